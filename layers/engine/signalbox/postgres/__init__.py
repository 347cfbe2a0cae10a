"""Connect to Postgres, and offer what every room needs from it: queries, ids, text that it can store."""
