"""Run workers in processes, over a lane that delivers late, often, and again after one was killed.

Nobody waits for leases to run out: `at_work` says whose still hold, and the test lets the others run out.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sys
from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from signalbox.app import App
from signalbox.invocation import Invocation
from signalbox.packs.job_type import JobType
from signalbox.testing.stage import Stage
from tests.support.jobs.endure import ENDURE_TYPES, STARTS

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.support.job_crowd"])
# Lambda's time of each invocation, of which the engine keeps nothing back here.
INVOCATION_SECONDS = 20.0
_numbers = count(1)


class JobCrowd:
    """Own the processes. Their lane's messages come to one of them after the other, in batches."""

    def __init__(
        self,
        dsn: str,
        lanes_url: str,
        starts: Path,
        size: int,
        seed: int,
        job_types: Sequence[JobType] = ENDURE_TYPES,
        most_copies: int = 3,
    ) -> None:
        self._chance, self._most_copies = random.Random(seed), most_copies
        self._lane: deque[tuple[str, str]] = deque()
        self.types: dict[str, str] = {}  # of jobs by their ids, as their messages name them
        self._workers = [_Worker(dsn, lanes_url, str(starts), job_types) for _ in range(size)]
        self.killed: set[str] = set()  # invocations, by their request ids
        self.frozen: set[str] = set()
        self.failed: set[str] = set()  # that ended by an error, such as a database that was away for too long

    def put(self, job_ids: Sequence[str]) -> None:
        """Put each up to `most_copies` times, the later ones anywhere behind."""
        copies = [
            (id_, self.types.get(id_, "any"))
            for id_ in job_ids
            for _ in range(self._chance.randint(1, self._most_copies))
        ]
        self._chance.shuffle(copies)
        self._lane.extend(copies)

    @property
    def waiting(self) -> int:
        """Count the messages that nobody has taken yet."""
        return len(self._lane)

    @property
    def at_work(self) -> list[str]:
        """Return the invocations that hold their leases, by their request ids."""
        return [worker.request_id for worker in self._workers if worker.holds_leases]

    def turn(self, size: int) -> None:
        """Give each free worker a batch; bring back what failed or was with a lost worker."""
        for worker in self._workers:
            if worker.ended():
                self.failed.add(worker.request_id)
                self._lane.extend(worker.take_back())
            if not worker.batch and self._lane:
                worker.give([self._lane.popleft() for _ in range(min(size, len(self._lane)))])

    def kill_one(self) -> None:
        """Kill one that is at work, if there is one, without a word."""
        if worker := self._any_at_work():
            self.killed.add(worker.request_id)
            worker.send(signal.SIGKILL)

    def freeze_one(self) -> None:
        """Freeze one that is at work, until it is thawed."""
        if worker := self._any_at_work():
            self.frozen.add(worker.request_id)
            worker.is_frozen = True
            worker.send(signal.SIGSTOP)

    def thaw(self) -> None:
        """Thaw all of them."""
        for worker in self._workers:
            worker.is_frozen = False
            worker.send(signal.SIGCONT)

    def _any_at_work(self) -> _Worker | None:
        busy = [worker for worker in self._workers if worker.holds_leases]
        return self._chance.choice(busy) if busy else None

    def stop(self) -> None:
        for worker in self._workers:
            worker.stop()


class _Worker:
    """Run one process and the batch that it has in hand."""

    def __init__(self, dsn: str, lanes_url: str, starts: str, job_types: Sequence[JobType]) -> None:
        self._arguments = (dsn, lanes_url, starts, job_types)
        self.batch: list[tuple[str, str]] = []
        self.request_id = ""
        self.is_frozen = False
        self._start()

    def _start(self) -> None:
        self._pipe, theirs = _context.Pipe()
        self._process: BaseProcess = _context.Process(target=_work, args=(theirs, *self._arguments), daemon=True)
        self._process.start()
        theirs.close()

    def give(self, batch: list[tuple[str, str]]) -> None:
        """Give a batch; replace a worker first that was killed after its last answer."""
        self.batch, self.request_id = batch, f"request-{next(_numbers)}"
        try:
            self._pipe.send((self.request_id, batch))
        except (BrokenPipeError, ConnectionResetError):
            self._process.join()
            self._start()
            self._pipe.send((self.request_id, batch))

    @property
    def holds_leases(self) -> bool:
        return bool(self.batch) and self._process.is_alive() and not self.is_frozen

    def ended(self) -> bool:
        """Say whether the batch came back, by an error or by the end of its worker; forget one that is done."""
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

    def take_back(self) -> list[tuple[str, str]]:
        batch, self.batch = self.batch, []
        return batch

    def send(self, what: signal.Signals) -> None:
        """Send a signal, unless it has ended meanwhile."""
        if self._process.is_alive() and self._process.pid is not None:
            os.kill(self._process.pid, what)

    def stop(self) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()


def _work(pipe: Connection, dsn: str, lanes_url: str, starts: str, job_types: Sequence[JobType]) -> None:
    sys.stdout = Path("/dev/null").open("w")  # noqa: SIM115 - for the life of the process
    os.environ |= {"AWS_ENDPOINT_URL_SQS": lanes_url, "AWS_DEFAULT_REGION": "us-east-1", STARTS: starts}
    os.environ |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    stage = Stage(dsn, budget_margin_seconds="0", worker_connections="3")
    app = stage.with_job_types(*job_types).app
    while True:
        request_id, batch = pipe.recv()
        records = [_record(place, *job) for place, job in enumerate(batch)]
        pipe.send(_invoke(app, request_id, {"Records": records}))


def _record(place: int, job_id: str, job_type: str) -> dict[str, str]:
    body = json.dumps({"job_id": job_id, "job_type": job_type})
    return {"messageId": str(place), "body": body, "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:any-normal"}


def _invoke(app: App, request_id: str, event: dict[str, Any]) -> bool:
    """Run a batch; say whether it failed, as Lambda would see it."""
    try:
        app.work(event, Invocation.of(request_id, datetime.now(UTC), INVOCATION_SECONDS))
    except Exception:  # whatever it is: the batch comes again
        return True
    return False
