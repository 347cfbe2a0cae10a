"""Benchmarks of packs."""
