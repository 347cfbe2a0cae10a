"""Commands about a stack as a whole."""
