"""Run a whole stack on one machine: Postgres, a stand-in for AWS, and Lambda's own runtime."""
