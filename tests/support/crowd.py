"""Fork workers from a process that has imported everything, and start them at the same moment."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from signalbox.testing.stage import Stage
from tests.support.tasks import TEST_TASKS

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.support.crowd"])


def deliver_at_once(dsn: str, task: str, at: datetime, times: int) -> list[dict[str, Any]]:
    """Deliver one payload so many times at once; return the answers, or the errors by their names."""
    gate = _context.Barrier(times)
    workers = [_start(_deliver, dsn, task, at, gate) for _ in range(times)]
    answers: list[dict[str, Any]] = [inbox.recv() for _, inbox in workers]
    for process, _ in workers:
        process.join()
    return answers


@contextmanager
def one_worker(dsn: str, task: str, at: datetime) -> Iterator[BaseProcess]:
    """Start a worker that a test may kill."""
    process, _ = _start(_deliver, dsn, task, at, None)
    try:
        yield process
    finally:
        process.kill()
        process.join()


def _start(target: Any, *args: Any) -> tuple[BaseProcess, Connection]:
    inbox, outbox = _context.Pipe(duplex=False)
    process = _context.Process(target=target, args=(outbox, *args), daemon=True)
    process.start()
    return process, inbox


def _deliver(outbox: Connection, dsn: str, task: str, at: datetime, gate: Barrier | None) -> None:
    sys.stdout = Path("/dev/null").open("w")  # noqa: SIM115 - for the life of the process
    with Stage(dsn).with_tasks(*TEST_TASKS) as stage:
        stage.app.resources.database.connection()
        if gate is not None:
            gate.wait()
        try:
            outbox.send(stage.run(task, at))
        except Exception as error:
            outbox.send({"status": type(error).__name__, "reason": str(error)})
