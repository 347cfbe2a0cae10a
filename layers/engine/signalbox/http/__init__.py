"""Requests to services outside."""
