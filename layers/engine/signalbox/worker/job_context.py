"""Define what a job receives: its payload, the world it works on, and the ways to report its progress."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from psycopg.types.json import Jsonb

from signalbox.aws.clients import Clients
from signalbox.budget import Budget
from signalbox.jobs.job import ClaimedJob
from signalbox.packs.outcome import Deadline, JobCancelled, Permanent, Signal
from signalbox.postgres.connection import Connection
from signalbox.postgres.pg_text import clean, fault_of_json
from signalbox.postgres.queries import load_queries
from signalbox.runtime.log import Logger
from signalbox.submit.insert import submit
from signalbox.submit.new_job import NewJob, Submitted
from signalbox.worker.connections import AsyncLentConnection, LentConnection
from signalbox.worker.lease import LeaseLost

if TYPE_CHECKING:
    from signalbox.invocation import Resources

SQL = load_queries(__file__)
MOST_NOTES = 10_000  # bytes of JSON


@dataclass(slots=True)
class JobProgress:
    """Hold the job's progress, for the heartbeat to write, and what the heartbeat has read."""

    percent: int | None = None
    message: str | None = None
    cancel_asked: bool = False
    notes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobContext:
    """Hold one attempt's view of the world."""

    job: ClaimedJob
    payload: Any  # the type's own model
    now: datetime
    budget: Budget  # until the job's own time-out
    resources: Resources
    progress: JobProgress
    submitted: list[Submitted]  # to be sent once the job has ended
    connect: Callable[[], Connection]
    reader: Any = None  # a connection of a role that can only read

    @property
    def db(self) -> Connection:
        """Return the job's connection.

        On that of a transactional job, everything commits together with the job's end. That of a job beside others in a
        thread borrows a connection for each `execute`, `cursor` and `transaction`.
        """
        return self.connect()

    @property
    def reading(self) -> Connection:
        """Return a connection for reading only: of a role that can do nothing else, where the stack has one."""
        reader: Connection = self.reader or self.db
        return reader

    @property
    def clients(self) -> Clients:
        return self.resources.clients

    @property
    def log(self) -> Logger:
        return self.resources.log

    @property
    def cursor(self) -> Any:
        """Return where the job's last piece ended, as it said with More, or None in its first piece."""
        return self.job.cursor

    @property
    def key(self) -> str:
        """Return a key that is the same in each attempt: the idempotency key for calls to other services."""
        return self.job.id

    def report(self, percent: int, message: str | None = None) -> None:
        """Report how far the job is; the next heartbeat writes it down."""
        self.progress.percent = min(100, max(0, int(percent)))
        self.progress.message = None if message is None else clean(str(message))

    def note(self, **facts: Any) -> None:
        """Note where the job is: its step, ids, partial results. A failed attempt and its dead letter show it."""
        notes = {**self.progress.notes, **facts}
        if (fault := fault_of_json(notes)) or len(json.dumps(notes)) > MOST_NOTES:
            raise Permanent(f"the facts {sorted(facts)} can't be noted: {fault or f'more than {MOST_NOTES:,} bytes'}")
        self.progress.notes = notes

    def check_cancelled(self) -> None:
        """Raise where the job's cancellation was requested. Call it where stopping does no harm."""
        if self.progress.cancel_asked:
            raise JobCancelled("cancelled while it ran, as was asked for")

    def received(self) -> Signal | Deadline | None:
        """Return what a job that answered Wait has received, the same in each attempt; None: nothing yet."""
        row = self.db.execute(SQL["read_wait"], self._lease).fetchone()
        return _received(row)

    def once(self, step: str, call: Callable[[], Any]) -> Any:
        """Call and keep the answer, JSON, or return the one that an earlier attempt has kept under the step's name.

        The answer is kept at once, whatever becomes of the job's transaction. An attempt that dies between the call and
        its answer leaves none: give `context.key` to the other side, too.
        """
        if (known := self._step(step)) is not None:
            return known[0]
        return self._keep_step(step, call())

    def kept(self, prefix: str) -> list[Any]:
        """Return what `once` has kept under the names that begin so, of all attempts."""
        with self.resources.pool.lend() as database:
            values = {"job": self.job.id, "prefix": prefix}
            return [answer for (answer,) in database.connection().execute(SQL["find_steps"], values)]

    def _step(self, step: str) -> tuple[Any] | None:
        with self.resources.pool.lend() as database:
            row: tuple[Any] | None = (
                database.connection().execute(SQL["find_step"], {"job": self.job.id, "name": step}).fetchone()
            )
        return row

    def _keep_step(self, step: str, answer: Any) -> Any:
        if fault := fault_of_json(answer):
            raise Permanent(f"the answer of step '{step}' can't be kept as JSON: {fault}")
        values = {**self._lease, "name": step, "answer": Jsonb(answer)}
        with self.resources.pool.lend() as database:
            row = database.connection().execute(SQL["keep_step"], values).fetchone()
        if row is not None:
            return row[0]
        if (known := self._step(step)) is None:
            raise LeaseLost
        return known[0]

    @property
    def _lease(self) -> dict[str, Any]:
        return {"job": self.job.id, "token": self.job.token}

    def submit(self, jobs: Sequence[NewJob]) -> list[Submitted]:
        """Submit further jobs, by default as children of this one; those of a transactional job commit with its end."""
        db = self.db
        lent: Any = db  # its declared type is the one that jobs see
        with lent.connection() if isinstance(lent, LentConnection) else nullcontext(db) as connection:
            found = submit(connection, self.resources.job_types, self._children(jobs), self.now)
        self.submitted.extend(found)
        return found

    def fan_out(
        self, children: Sequence[NewJob], then: NewJob | None = None, name: str = "children"
    ) -> list[Submitted]:
        """Submit jobs as a group, and one that begins once all of them have ended and finds their counts in its config.

        It is safe to repeat: jobs without keys get such of this job, the name and their place.
        """
        db = self.db
        lent: Any = db
        with lent.connection() if isinstance(lent, LentConnection) else nullcontext(db) as connection:
            found = self._submit_group(connection, children, then, name)
        self.submitted.extend(found)
        return found

    def _submit_group(
        self, db: Connection, children: Sequence[NewJob], then: NewJob | None, name: str
    ) -> list[Submitted]:
        from signalbox.submit.groups import seal_group  # few jobs fan out

        group, job_types = f"{self.job.id}:{name}", self.resources.job_types
        jobs = [
            replace(one, group=group, idempotency_key=one.idempotency_key or f"{group}:{place}")
            for place, one in enumerate(self._children(children))
        ]
        if then is not None:
            [then] = self._children([replace(then, idempotency_key=then.idempotency_key or f"{group}:then")])
        with db.transaction():
            found = submit(db, job_types, jobs, self.now)
            seal_group(db, job_types, group, self.now, then)
        return found

    def _children(self, jobs: Sequence[NewJob]) -> list[NewJob]:
        return [replace(new, parent_id=new.parent_id or self.job.id) for new in jobs]


class AsyncJobContext(JobContext):
    """Hold what an `async def` job receives. Blocking calls go through a thread: `await asyncio.to_thread(…)`."""

    __slots__ = ()

    @property
    def db(self) -> AsyncLentConnection:  # type: ignore[override]
        """Return a connection that borrows one of the event loop's for each statement and each transaction."""
        return self.connect()  # type: ignore[return-value]

    async def received(self) -> Signal | Deadline | None:  # type: ignore[override]
        return _received(await (await self.db.execute(SQL["read_wait"], self._lease)).fetchone())

    async def once(self, step: str, call: Callable[[], Awaitable[Any]]) -> Any:
        if (known := await asyncio.to_thread(self._step, step)) is not None:
            return known[0]
        return await asyncio.to_thread(self._keep_step, step, await call())

    async def kept(self, prefix: str) -> list[Any]:  # type: ignore[override]
        return await asyncio.to_thread(super().kept, prefix)

    async def submit(self, jobs: Sequence[NewJob]) -> list[Submitted]:  # type: ignore[override]
        """Submit further jobs, by default as children of this one, in a transaction of their own."""
        found = await asyncio.to_thread(self._submit_in_thread, self._children(jobs))
        self.submitted.extend(found)
        return found

    async def fan_out(  # type: ignore[override]
        self, children: Sequence[NewJob], then: NewJob | None = None, name: str = "children"
    ) -> list[Submitted]:
        found = await asyncio.to_thread(self._submit_group_in_thread, children, then, name)
        self.submitted.extend(found)
        return found

    def _submit_in_thread(self, children: Sequence[NewJob]) -> list[Submitted]:
        with self.resources.pool.lend() as database:
            return submit(database.connection(), self.resources.job_types, children, self.now)

    def _submit_group_in_thread(self, children: Sequence[NewJob], then: NewJob | None, name: str) -> list[Submitted]:
        with self.resources.pool.lend() as database:
            return self._submit_group(database.connection(), children, then, name)


def _received(row: tuple[str, Any] | None) -> Signal | Deadline | None:
    if row is None:
        return None
    return Signal(row[1]) if row[0] == "signal" else Deadline()
