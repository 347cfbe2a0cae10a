"""Define a job: its row, its statuses, and what the end of an attempt makes of it. Pure."""
