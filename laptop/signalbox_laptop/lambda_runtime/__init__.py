"""Run one execution environment: its process, the Runtime API, its logs."""
