"""What an application submits jobs with, in its own transactions."""
