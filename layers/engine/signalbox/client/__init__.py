"""Submit jobs for an application, in its own transactions."""
