"""Start several acts at the same moment, each in a thread."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime
from threading import Barrier
from typing import Any

import psycopg

from signalbox.testing.stage import Stage


def at_once(*acts: Callable[..., Any], dsn: str | None = None) -> list[Any]:
    """Return the acts' answers or errors in their order; with `dsn`, give each a connection of its own."""
    gate = Barrier(len(acts), timeout=30)

    def run(act: Callable[..., Any]) -> Any:
        with ExitStack() as opened:
            given = [opened.enter_context(psycopg.connect(dsn, autocommit=True))] if dsn else []
            gate.wait()
            try:
                return act(*given)
            except Exception as error:
                return error

    with ThreadPoolExecutor(len(acts)) as threads:
        return list(threads.map(run, acts))


def two_at_once(stage: Stage, task: str, first: datetime, second: datetime) -> list[dict[str, Any]]:
    """Run a task at both instants, each on a stage of its own; return the answers or errors."""
    other = stage.another()
    for one in (stage, other):
        one.app.resources.database.connection()
    answers = at_once(lambda: stage.run(task, first), lambda: other.run(task, second))
    return [{"status": repr(answer)} if isinstance(answer, Exception) else answer for answer in answers]
