"""Migrate the schema: its migrations, and the migrator function that applies them on deploy."""
