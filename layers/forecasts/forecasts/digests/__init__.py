"""Decide when a digest is due, and when an organisation is not to be disturbed."""
