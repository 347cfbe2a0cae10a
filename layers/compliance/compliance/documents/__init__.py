"""Read permits, and extract their obligations."""
