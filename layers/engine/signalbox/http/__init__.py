"""Send requests to services outside."""
