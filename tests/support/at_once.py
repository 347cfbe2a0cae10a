"""Several acts, each in a thread, let go at the same moment."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from threading import Barrier
from typing import Any

import psycopg

from signalbox.testing.aws import AwsStandIn
from signalbox.testing.stage import Stage


def at_once(*acts: Callable[..., Any], dsn: str | None = None) -> list[Any]:
    """Return what they answered, or the errors, in their order; with `dsn` each is given a connection of its own."""
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


def two_at_once(dsn: str, aws: AwsStandIn, task: str, *at: datetime) -> list[dict[str, Any]]:
    """Run a task of the pack at each instant, each on a stage of its own; return the answers, or the errors."""
    with ExitStack() as opened:
        stages = [opened.enter_context(Stage(dsn, aws, packs="forecasts")) for _ in at]
        for stage in stages:
            stage.app.resources.database.connection()
        answers = at_once(*(partial(stage.run, task, instant) for stage, instant in zip(stages, at, strict=True)))
    return [{"status": repr(answer)} if isinstance(answer, Exception) else answer for answer in answers]
