"""Measure what tasks and starts cost."""
