"""Compute figures and health of the job plane."""
