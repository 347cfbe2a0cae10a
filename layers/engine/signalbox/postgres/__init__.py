"""What several tasks ask of Postgres in the same way."""
