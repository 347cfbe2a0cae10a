"""Measure what jobs cost and how long they wait."""
