"""Measure ratios, each in one run against the floor that it names."""
