"""What commands print, as text. Pure."""
