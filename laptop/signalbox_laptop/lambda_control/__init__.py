"""The laptop's Lambda service: which functions there are, and who runs how many of them at once."""
