"""What becomes of jobs and runs that failed for good: recorded, triaged, redriven."""
