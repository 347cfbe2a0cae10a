"""The client submits jobs for an application, in its own transactions."""
