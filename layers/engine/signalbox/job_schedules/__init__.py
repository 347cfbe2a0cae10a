"""Schedules that submit jobs."""
