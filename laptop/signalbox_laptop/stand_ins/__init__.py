"""Serve small HTTP servers in place of outside services."""
