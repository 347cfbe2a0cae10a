"""Django's tasks as jobs: a backend for the application, and the job type by which the workers run them."""
