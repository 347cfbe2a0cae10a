"""Run tasks: one run for each slot, claimed and recorded in job_history."""
