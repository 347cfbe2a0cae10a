"""Connections to Postgres, and what every room asks of it: queries, ids, text that it can store."""
