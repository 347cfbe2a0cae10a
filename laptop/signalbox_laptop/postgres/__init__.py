"""The laptop's PostgreSQL, and who may log in."""
