"""Serve the pages: HTML for people, over the same operations as the command line and the HTTP API."""
