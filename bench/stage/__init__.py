"""Provide what benchmarks run on: a database, a worker, a function as Lambda starts it."""
