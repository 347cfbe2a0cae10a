"""(c) Run an empty task, from its payload to its answer, against three bare round trips on the same connection.

A run is two statements that commit: its claim and its end. So its floor is three round trips that each commit one row;
three that read nothing are shown, too, to tell the cost of durability.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from datetime import UTC, datetime, timedelta
from itertools import count
from types import ModuleType

from bench.ratio import Ratio, alternate, timed
from signalbox.app import App
from signalbox.invocation import Invocation
from signalbox.ledger.context import Context, Done
from signalbox.packs.task import Task
from signalbox.postgres.connection import Connection

ROUNDS = 500
NEWEST = datetime(2026, 1, 1, tzinfo=UTC)


def measure(dsn: str) -> list[Ratio]:
    # A run writes its log, but it is not shown.
    with redirect_stdout(io.StringIO()), empty_engine(dsn) as engine:
        connection = engine.resources.database.connection()
        connection.execute("CREATE TABLE IF NOT EXISTS bare (n int)")
        ours, writes, reads = alternate(
            ROUNDS,
            timed(_runner(engine)),
            timed(lambda: _three(connection, "INSERT INTO bare VALUES (1)")),
            timed(lambda: _three(connection, "SELECT 1")),
        )
    what = "(c) a run of an empty task"
    return [
        Ratio(what, "three round trips that each commit a row", ours, writes, 1.5),
        Ratio(what, "three round trips that do nothing", ours, reads),
    ]


@contextmanager
def empty_engine(dsn: str) -> Iterator[App]:
    """Start an engine with a task that does nothing."""
    module = ModuleType("bench_empty_task")
    module.empty_task = _empty_task  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
    engine = App.start({"SIGNALBOX_STACK": "bench", "SIGNALBOX_DATABASE_URL": dsn})
    task = Task("empty_task", "does nothing", module.__name__, schedule="cron(* * * * ? *)")
    engine.resources.tasks.by_name = {**engine.resources.tasks.by_name, task.name: task}
    try:
        yield engine
    finally:
        engine.resources.database.close()


def _runner(engine: App) -> Callable[[], None]:
    minutes = count()

    def run() -> None:
        at = NEWEST - timedelta(minutes=next(minutes))
        answer = engine.run_task({"task": "empty_task"}, Invocation.of("bench", at, 60))
        if answer["status"] != "succeeded":
            raise RuntimeError(f"the run did not succeed: {answer}")

    return run


def _empty_task(_: Context) -> Done:
    return Done()


def _three(connection: Connection, statement: str) -> None:
    for _ in range(3):
        connection.execute(statement.encode())
