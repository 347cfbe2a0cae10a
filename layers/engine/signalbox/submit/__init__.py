"""How jobs get into the database, in the caller's transaction."""
