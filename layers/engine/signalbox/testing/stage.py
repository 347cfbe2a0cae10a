"""Provide a stage: the App of a function on a test's database, with the tasks and job types that a test adds.

It is called as a function's handler calls it, and instants are passed in. Jobs are submitted on `db`, the caller's own
connection beside those of the App.
"""

from __future__ import annotations

import json
import os
from collections import ChainMap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import count
from typing import Any, Self
from urllib.parse import urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict

from signalbox.app import App
from signalbox.invocation import Invocation
from signalbox.operations import operate
from signalbox.packs.job_type import JobType
from signalbox.packs.pack import Pack
from signalbox.packs.registries import JobTypeRegistry, TaskRegistry
from signalbox.packs.task import Task
from signalbox.submit.insert import submit
from signalbox.submit.new_job import NewJob, Submitted
from signalbox.testing import drain, rows
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.sqs_events import ACCOUNT

NOON = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
WORKER_SECONDS = 300.0  # about what the template gives a worker; with little time it begins nothing
_requests = count(1)


class Stage:
    """Own an App, and `db` where none is given. Settings are those of the environment, without their prefix."""

    def __init__(
        self, dsn: str, aws: AwsStandIn | None = None, *, db: psycopg.Connection[Any] | None = None, **settings: str
    ) -> None:
        self.dsn, self._aws, self._settings = dsn, aws, settings
        environ = {"stack": "signalbox", "database_url": as_url(dsn)} | settings
        named = {f"SIGNALBOX_{name.upper()}": value for name, value in environ.items()}
        self.app = App.start(ChainMap(named | {"AWS_LAMBDA_LOG_STREAM_NAME": "log-stream"}, os.environ))
        self._opened = ExitStack()
        if db is not None:
            self.db = db

    @cached_property
    def db(self) -> psycopg.Connection[Any]:
        """Return the caller's connection beside those of the App, in autocommit."""
        return self._opened.enter_context(psycopg.connect(self.dsn, autocommit=True))

    @property
    def aws(self) -> AwsStandIn:
        """Return the stand-in for AWS, which holds what was sent there."""
        assert self._aws is not None, "this stage was made without a stand-in for AWS: Stage(dsn, aws)"
        return self._aws

    @property
    def job_types(self) -> JobTypeRegistry:
        return self.app.resources.job_types

    # ---- what it knows

    def with_tasks(self, *tasks: Task) -> Self:
        """Register further tasks."""
        return self._register(tasks, ())

    def with_job_types(self, *job_types: JobType) -> Self:
        """Register further job types."""
        return self._register((), job_types)

    def with_packs(self, *packs: Pack) -> Self:
        """Register the tasks and job types of packs, whose migrations the database has."""
        tasks = [task for pack in packs for task in pack.tasks]
        return self._register(tasks, [one for pack in packs for one in pack.job_types], packs)

    def beside(self, db: psycopg.Connection[Any]) -> Self:
        """Return the same stage for a caller on another connection."""
        other = copy(self)
        other.db = db
        return other

    def another(self, **settings: str) -> Stage:
        """Return a stage with the same tasks and types on its own connections; it closes with this one."""
        other = Stage(self.dsn, self._aws, db=self.db, **self._settings | settings)
        ours = self.app.resources
        known = replace(other.app.resources, tasks=ours.tasks, job_types=ours.job_types, packs=ours.packs)
        other.app = replace(other.app, resources=known)
        return self._opened.enter_context(other)

    def _register(self, tasks: Iterable[Task], job_types: Iterable[JobType], packs: tuple[Pack, ...] = ()) -> Self:
        resources = replace(self.app.resources, packs=(*self.app.resources.packs, *packs))
        registry = TaskRegistry([*resources.tasks, *tasks])
        types = JobTypeRegistry([*resources.job_types, *job_types], registry)
        self.app = replace(self.app, resources=replace(resources, tasks=registry, job_types=types))
        return self

    # ---- what handlers ask

    def run(
        self, task: str, at: datetime = NOON, *, seconds: float = 60, request_id: str = "", **fields: Any
    ) -> dict[str, Any]:
        """Run a task at an instant; `fields` are those of its payload."""
        return self.invoke({"task": task} | fields, at, seconds=seconds, request_id=request_id)

    def invoke(
        self, event: object, at: datetime = NOON, *, seconds: float = 60, request_id: str = ""
    ) -> dict[str, Any]:
        """Invoke the archiver with an event."""
        return self.app.run_task(event, self.invocation(at, seconds, request_id))

    def deliver(self, at: datetime = NOON, *, seconds: float = 60) -> list[dict[str, Any]]:
        """Act as Lambda: invoke the archiver with everything that was handed over, and what that hands over in turn."""
        answers = []
        while self.aws.invoked:
            _, payload = self.aws.invoked.popleft()
            answers.append(self.invoke(payload, at, seconds=seconds))
        return answers

    def operate(self, operation: str, at: datetime = NOON, **params: Any) -> dict[str, Any]:
        """Ask for one operation, as the command line does; a refusal is raised."""
        return operate(self.app.resources, {"operation": operation, "params": params}, self.invocation(at))

    def work(
        self, *job_ids: str, event: object = None, lane: str = "", seconds: float = WORKER_SECONDS
    ) -> dict[str, Any]:
        """Invoke the worker with a message for each job, or with an event. With a lane it takes up other jobs, too."""
        invocation = self.invocation(datetime.now(UTC), seconds)
        return self.app.work(event or self._messages(job_ids, lane), invocation)

    def consume(self, *messages: dict[str, Any]) -> list[str]:
        """Invoke the dead-letter consumer; return the ids of the messages that come back."""
        answer = self.app.consume_dead_letters({"Records": list(messages)}, self.invocation())
        return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]

    @staticmethod
    def invocation(at: datetime = NOON, seconds: float = 60, request_id: str = "") -> Invocation:
        """Return one invocation, as Lambda would describe it."""
        return Invocation.of(request_id or f"request-{next(_requests)}", at, seconds)

    def _messages(self, job_ids: Sequence[str], lane: str) -> dict[str, Any]:
        found = self.db.execute("SELECT id::text, job_type FROM signalbox.jobs WHERE id = ANY (%s)", (list(job_ids),))
        types: dict[str, str] = dict(found.fetchall())
        bodies = [json.dumps({"job_id": id_, "job_type": types.get(id_, "unknown")}) for id_ in job_ids]
        source = {"eventSourceARN": f"arn:aws:sqs:{ACCOUNT}:signalbox-{lane}"} if lane else {}
        return {"Records": [{"messageId": f"message-{n}", "body": body} | source for n, body in enumerate(bodies)]}

    # ---- jobs

    def submit(self, job: NewJob | str, **fields: Any) -> str:
        """Submit one job, or one of that type with these fields; return its id."""
        return self.submit_all([NewJob(job_type=job, **fields) if isinstance(job, str) else job])[0].id

    def submit_all(self, jobs: Sequence[NewJob | str], at: datetime | None = None) -> list[Submitted]:
        """Submit jobs on the caller's connection; nothing is sent."""
        new = [NewJob(job_type=job) if isinstance(job, str) else job for job in jobs]
        return submit(self.db, self.job_types, new, at or datetime.now(UTC))

    def job(self, job_id: str) -> dict[str, Any]:
        """Return the job's row."""
        return rows.job(self.db, job_id)

    def status(self, job_id: str) -> str:
        """Return the job's status."""
        return str(self.job(job_id)["status"])

    def statuses(self, *job_ids: str) -> list[str]:
        """Return the status of each of the jobs."""
        return rows.statuses(self.db, *job_ids)

    def attempts(self, job_id: str) -> list[dict[str, Any]]:
        """Return the job's executions, the first one first."""
        return rows.attempts(self.db, job_id)

    def dead_letter(self, job_id: str) -> dict[str, Any]:
        """Return the job's dead letter."""
        return rows.dead_letter_of(self.db, job_id)

    def make_due(self, *job_ids: str) -> None:
        """Move the time that the jobs wait for into the past."""
        statement = "UPDATE signalbox.jobs SET scheduled_for = now() - interval '1 s' WHERE id = ANY (%s::uuid[])"
        self.db.execute(statement, (list(job_ids),))

    def step(self, job_id: str, *, seconds: float = WORKER_SECONDS) -> dict[str, Any]:
        """Make one attempt at a job, as if its time had come; return its row."""
        self.make_due(job_id)
        self.work(job_id, seconds=seconds)
        return self.job(job_id)

    def finish(self, job_id: str) -> dict[str, Any]:
        """Drain, however long jobs would wait; return the job's row, which has ended."""
        self.drain(drain.EVER)
        return self.job(job_id)

    def drain(self, until: datetime | None = None, *, limit: int = drain.MOST_ATTEMPTS) -> list[drain.EndedJob]:
        """Work on all jobs that are due, and on what they submit or release; return those that have ended.

        With `until`, jobs that wait for a time up to then are due, retries too. After `limit` attempts it gives up.
        """
        return drain.drain(self, until, limit)

    @contextmanager
    def immediate(self) -> Iterator[None]:
        """Drain whenever a transaction of this process has committed on the test's database, in the same thread."""
        # The worker is another function; and the caller's connection may be in a transaction when another one commits.
        with psycopg.connect(self.dsn, autocommit=True) as db, drain.after_each_commit(self.another().beside(db)):
            yield

    # ---- its end

    def close(self) -> None:
        """Close every connection that it opened."""
        self.app.close()
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def as_url(dsn: str) -> str:
    """Return the DSN as a URL, which is what the settings take."""
    parts = {name: str(value) for name, value in conninfo_to_dict(dsn).items()}
    return f"postgresql:///?{urlencode(parts)}"
