"""Decide who asks for an operation, and what they may ask for: callers, roles and tokens."""
