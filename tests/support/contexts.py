"""Make a task's context without the engine's guards, so that a test sees the task's own."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from signalbox.budget import Budget
from signalbox.ledger.context import Context
from signalbox.runtime.metrics import TaskMetrics
from signalbox.testing.stage import Stage


def context_of(stage: Stage, task: str, now: datetime, params: Any = None, *, seconds: float = 50) -> Context:
    resources = stage.app.resources
    return Context(
        task=task,
        slot=now,
        now=now,
        params=params,
        budget=Budget.of(seconds),
        db=resources.database.connection(),
        metrics=TaskMetrics(resources.settings.stack, task),
        worker_id="tests",
        resources=resources,
    )
