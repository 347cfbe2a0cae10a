"""Django's tasks run as jobs: a backend submits them, and a job type runs them in the workers."""
