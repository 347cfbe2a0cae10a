"""Check, evaluate and test rules."""
