"""A script that has become a job, and ends the process that imports it."""

raise SystemExit(3)
