"""Test tasks and jobs on a real database, with a stage, rows to begin from, and stand-ins for AWS.

`pytest_plugins = ["signalbox.testing.plugin"]` turns the fixtures on; docs/testing.md shows them at work.
"""
