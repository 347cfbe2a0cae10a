"""Commands about tasks and their runs."""
