"""Sum up the clients of consultants."""
