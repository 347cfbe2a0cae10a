"""Keep the schedules that submit jobs."""
