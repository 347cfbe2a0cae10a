"""Read uploaded files."""
