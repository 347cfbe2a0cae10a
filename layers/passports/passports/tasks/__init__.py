"""List the pack's tasks; each has a rule of its name in template.yaml."""

from __future__ import annotations

from signalbox import Task

TASKS: tuple[Task, ...] = (
    Task(
        "verify_events",
        "verify the chains of events",
        "passports.tasks.verify_events",
        schedule="cron(30 5 * * ? *)",
    ),
)
