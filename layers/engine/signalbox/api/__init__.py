"""Serve operations over HTTP: a request of the HTTP API becomes an operation, and its answer a response."""
