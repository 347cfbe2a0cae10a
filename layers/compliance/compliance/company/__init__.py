"""Share what the jobs of one company need: its lock, its pieces of rows, its people, and what they are told."""
