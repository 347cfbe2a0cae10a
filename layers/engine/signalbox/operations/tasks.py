"""List the tasks that this stack knows."""

from __future__ import annotations

from typing import Any

from signalbox.invocation import Invocation, Resources
from signalbox.packs.payload import Payload
from signalbox.packs.task import Task


class ListTasks(Payload):
    """Take no params."""


def list_tasks(resources: Resources, _: ListTasks, __: Invocation) -> dict[str, Any]:
    disabled = resources.settings.disabled_tasks
    return {"tasks": [_shown(task, task.name not in disabled) for task in resources.tasks]}


def _shown(task: Task, enabled: bool) -> dict[str, Any]:
    return {
        "name": task.name,
        "summary": task.summary,
        "function": task.function,
        "schedule": task.schedule,
        "catch_up": str(task.catch_up),
        "max_lateness_seconds": int(task.max_lateness.total_seconds()),
        "overlap": str(task.overlap),
        "retention_days": task.retention.days,
        "enabled": enabled,
    }
