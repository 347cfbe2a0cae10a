"""Small HTTP servers in place of outside services."""
