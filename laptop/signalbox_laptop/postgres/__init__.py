"""Run the laptop's PostgreSQL, and make its log-ins."""
