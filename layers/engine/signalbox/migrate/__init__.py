"""The schema's migrations, and the migrator function that applies them on deploy."""
