"""Import obligations from spreadsheets."""
