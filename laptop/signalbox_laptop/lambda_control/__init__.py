"""Run the laptop's Lambda service: which functions there are, and how many invocations of each may run at once."""
