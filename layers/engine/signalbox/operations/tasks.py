"""Which tasks this stack knows."""

from __future__ import annotations

from typing import Any

from signalbox.app import Engine
from signalbox.invocation import Invocation
from signalbox.packs.task import Task
from signalbox.runtime.payload import Payload


class ListTasks(Payload):
    """No params."""


def list_tasks(engine: Engine, _: ListTasks, __: Invocation) -> dict[str, Any]:
    disabled = engine.tools.settings.disabled_tasks
    return {"tasks": [_shown(task, task.name not in disabled) for task in engine.tools.registry]}


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
