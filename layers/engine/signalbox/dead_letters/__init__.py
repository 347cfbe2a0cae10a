"""Record, triage and redrive jobs and runs that failed for good."""
