"""An engine on a test's database, with tasks that tests register, asked as a function's handler asks it."""

from __future__ import annotations

import os
from collections import ChainMap
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import Any, Self
from urllib.parse import urlencode

from psycopg.conninfo import conninfo_to_dict

from signalbox.app import App
from signalbox.invocation import Invocation
from signalbox.operations import operate
from signalbox.packs.registries import JobTypeRegistry, TaskRegistry
from signalbox.packs.task import Task
from tests.support.invoke_recorder import InvokeRecorder
from tests.support.tasks import TEST_TASKS

NOON = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
_requests = count(1)


class Stage:
    """Owns an engine; `invoke` is one invocation of the archiver at a given instant."""

    def __init__(self, dsn: str, invokes: InvokeRecorder, **environ: str) -> None:
        self.dsn, self.invokes = dsn, invokes
        settings = {"SIGNALBOX_STACK": "signalbox", "SIGNALBOX_DATABASE_URL": as_url(dsn)}
        given = settings | {f"SIGNALBOX_{name.upper()}": value for name, value in environ.items()}
        engine = App.start(ChainMap(given, os.environ))
        self.engine = _with_tasks(engine, TEST_TASKS)

    def with_tasks(self, *tasks: Task) -> Stage:
        """Registers further tasks."""
        self.engine = _with_tasks(self.engine, tasks)
        return self

    def invoke(
        self, task: str, at: datetime = NOON, *, seconds: float = 60, request_id: str = "", **fields: Any
    ) -> dict[str, Any]:
        return self.send({"task": task} | fields, at, seconds=seconds, request_id=request_id)

    def send(self, event: object, at: datetime = NOON, *, seconds: float = 60, request_id: str = "") -> dict[str, Any]:
        return self.engine.run_task(event, self.invocation(at, seconds, request_id))

    def operate(self, operation: str, at: datetime = NOON, **params: Any) -> dict[str, Any]:
        return operate(self.engine.resources, {"operation": operation, "params": params}, self.invocation(at))

    def deliver(self, at: datetime = NOON, *, seconds: float = 60) -> list[dict[str, Any]]:
        """Plays Lambda: runs all that was handed over, and what that hands over in its turn."""
        answers = []
        while self.invokes.received:
            _, payload = self.invokes.received.popleft()
            answers.append(self.send(payload, at, seconds=seconds))
        return answers

    @staticmethod
    def invocation(at: datetime = NOON, seconds: float = 60, request_id: str = "") -> Invocation:
        return Invocation.of(request_id or f"request-{next(_requests)}", at, seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.engine.close()


def _with_tasks(engine: App, tasks: tuple[Task, ...]) -> App:
    registry = TaskRegistry([*engine.resources.tasks, *tasks])
    job_types = JobTypeRegistry(engine.resources.job_types, registry)
    return replace(engine, resources=replace(engine.resources, tasks=registry, job_types=job_types))


def as_url(dsn: str) -> str:
    """The DSN as a URL, which is what the settings take."""
    parts = {name: str(value) for name, value in conninfo_to_dict(dsn).items()}
    return f"postgresql:///?{urlencode(parts)}"
