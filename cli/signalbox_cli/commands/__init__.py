"""Each command has a module here."""
