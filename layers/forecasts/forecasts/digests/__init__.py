"""When a digest is due, and when nobody is to be disturbed."""
