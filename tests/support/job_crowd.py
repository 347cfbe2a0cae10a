"""Workers in processes of their own, with a lane between that delivers late, often, and again after one was killed."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sys
import time
from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from signalbox.invocation import Invocation
from tests.support.invoke_recorder import InvokeRecorder
from tests.support.stage import Stage
from tests.support.workshop import with_job_types

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.support.job_crowd"])
# Lambda's time of each invocation, of which the engine keeps nothing back here; a lease lasts a second longer.
INVOCATION_SECONDS = 4.0


class JobCrowd:
    """Owns the processes. What is put on its lane comes to one of them after the other, in batches."""

    def __init__(self, dsn: str, lanes_url: str, size: int, seed: int) -> None:
        self._arguments = (dsn, lanes_url)
        self._chance = random.Random(seed)
        self._lane: deque[str] = deque()
        self._workers = [_Worker(*self._arguments) for _ in range(size)]
        self.killed = 0

    def put(self, job_ids: Sequence[str]) -> None:
        """Each up to three times, the later ones anywhere behind."""
        copies = [id_ for id_ in job_ids for _ in range(self._chance.randint(1, 3))]
        self._chance.shuffle(copies)
        self._lane.extend(copies)

    @property
    def idle(self) -> bool:
        return not self._lane and not any(worker.batch for worker in self._workers)

    def turn(self, size: int) -> None:
        """Gives each free worker a batch; what failed, or was with a worker that is no more, comes again."""
        for worker in self._workers:
            if worker.ended():
                self._lane.extend(worker.take_back())
            if not worker.batch and self._lane:
                worker.give([self._lane.popleft() for _ in range(min(size, len(self._lane)))])

    def kill_one(self) -> None:
        """One that is at work, if there is one, without a word."""
        if busy := [worker for worker in self._workers if worker.batch]:
            self._chance.choice(busy).kill()
            self.killed += 1

    def stop(self) -> None:
        for worker in self._workers:
            worker.stop()


class _Worker:
    """One process and the batch that it has in hand."""

    def __init__(self, dsn: str, lanes_url: str) -> None:
        self._arguments = (dsn, lanes_url)
        self.batch: list[str] = []
        self._start()

    def _start(self) -> None:
        self._pipe, theirs = _context.Pipe()
        self._process: BaseProcess = _context.Process(target=_work, args=(theirs, *self._arguments), daemon=True)
        self._process.start()
        theirs.close()

    def give(self, batch: list[str]) -> None:
        """One that was killed after its last answer is replaced first."""
        self.batch = batch
        try:
            self._pipe.send(batch)
        except (BrokenPipeError, ConnectionResetError):
            self._process.join()
            self._start()
            self._pipe.send(batch)

    def ended(self) -> bool:
        """Whether the batch came back, by an error or by the end of its worker; one that is done is let go of."""
        if not self.batch:
            return False
        try:
            if not self._pipe.poll():
                return False
            failed = self._pipe.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            self._start()
            return True
        if not failed:
            self.batch = []
        return bool(failed)

    def take_back(self) -> list[str]:
        batch, self.batch = self.batch, []
        return batch

    def kill(self) -> None:
        if self._process.pid is not None:
            os.kill(self._process.pid, signal.SIGKILL)

    def stop(self) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()


def _work(pipe: Connection, dsn: str, lanes_url: str) -> None:
    sys.stdout = Path("/dev/null").open("w")  # noqa: SIM115 - for the life of the process
    os.environ |= {"AWS_ENDPOINT_URL_SQS": lanes_url, "AWS_DEFAULT_REGION": "us-east-1"}
    os.environ |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    stage = Stage(dsn, InvokeRecorder(), budget_margin_seconds="0", lease_margin_seconds="1")
    engine = with_job_types(stage.engine)
    while True:
        batch = pipe.recv()
        records = [
            {"messageId": str(place), "body": json.dumps({"job_id": id_, "job_type": "any"})}
            for place, id_ in enumerate(batch)
        ]
        pipe.send(_invoke(engine, {"Records": records}))


def _invoke(engine: Any, event: dict[str, Any]) -> bool:
    """Whether it failed, as Lambda would see it."""
    try:
        engine.work(event, Invocation.of(f"request-{time.monotonic_ns()}", datetime.now(UTC), INVOCATION_SECONDS))
    except Exception:  # whatever it is: the batch comes again
        return True
    return False
