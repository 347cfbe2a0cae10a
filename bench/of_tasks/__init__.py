"""What tasks and starts cost."""
