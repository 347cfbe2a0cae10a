"""Figures and health of the job plane."""
