"""Define what a pack declares: its tasks, its job types, and their policies. Pure."""
