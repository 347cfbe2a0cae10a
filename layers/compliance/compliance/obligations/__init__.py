"""Know when obligations are due, and remind of them."""
