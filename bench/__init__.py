"""Benchmarks: ratios measured in one run, against the floor that each names."""
