"""Measure other job queues beside ours."""
