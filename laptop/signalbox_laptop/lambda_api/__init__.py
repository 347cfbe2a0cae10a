"""Serve the laptop's endpoint over HTTP: Lambda's Invoke API here, everything else passed on to moto."""
