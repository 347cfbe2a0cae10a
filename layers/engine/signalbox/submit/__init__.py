"""Submit jobs into the database, in the caller's transaction."""
