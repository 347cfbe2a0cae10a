"""A task's context without the engine's guards around it: what a test needs to see the task's own."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from signalbox.budget import Budget
from signalbox.ledger.context import Context
from signalbox.runtime.metrics import TaskMetrics
from tests.support.stage import Stage


def context_of(stage: Stage, task: str, now: datetime, params: Any = None, *, seconds: float = 50) -> Context:
    tools = stage.engine.tools
    return Context(
        task=task,
        slot=now,
        now=now,
        params=params,
        budget=Budget.of(seconds),
        db=tools.database.connection(),
        clients=tools.clients,
        handoff=tools.handoff,
        log=tools.log,
        metrics=TaskMetrics(tools.settings.stack, task),
        registry=tools.registry,
        known=tools.registry,
        worker_id="tests",
        catalogue=tools.catalogue,
        settings=tools.settings,
    )
