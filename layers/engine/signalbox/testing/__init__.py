"""What tests of tasks and jobs run on: a real database, a stage, rows to begin from, and stand-ins for AWS.

`pytest_plugins = ["signalbox.testing.plugin"]` turns the fixtures on; docs/testing.md shows them at work.
"""
