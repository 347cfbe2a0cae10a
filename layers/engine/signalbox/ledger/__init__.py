"""Runs of tasks: one for each slot, claimed and recorded in job_history."""
