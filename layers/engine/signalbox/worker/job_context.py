"""Define what a job receives: its payload, the world it works on, and the ways to report its progress."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from signalbox.aws.clients import Clients
from signalbox.budget import Budget
from signalbox.jobs.job import ClaimedJob
from signalbox.packs.outcome import JobCancelled
from signalbox.postgres.connection import Connection
from signalbox.postgres.pg_text import clean
from signalbox.runtime.log import Logger
from signalbox.submit.insert import submit
from signalbox.submit.new_job import NewJob, Submitted
from signalbox.worker.connections import AsyncLentConnection, LentConnection

if TYPE_CHECKING:
    from signalbox.invocation import Resources


@dataclass(slots=True)
class JobProgress:
    """Hold the job's progress, for the heartbeat to write, and what the heartbeat has read."""

    percent: int | None = None
    message: str | None = None
    cancel_asked: bool = False


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

    def check_cancelled(self) -> None:
        """Raise where the job's cancellation was requested. Call it where stopping does no harm."""
        if self.progress.cancel_asked:
            raise JobCancelled("cancelled while it ran, as was asked for")

    def submit(self, jobs: Sequence[NewJob]) -> list[Submitted]:
        """Submit further jobs, by default as children of this one; those of a transactional job commit with its end."""
        db = self.db
        lent: Any = db  # its declared type is the one that jobs see
        with lent.connection() if isinstance(lent, LentConnection) else nullcontext(db) as connection:
            found = submit(connection, self.resources.job_types, self._children(jobs), self.now)
        self.submitted.extend(found)
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

    async def submit(self, jobs: Sequence[NewJob]) -> list[Submitted]:  # type: ignore[override]
        """Submit further jobs, by default as children of this one, in a transaction of their own."""
        found = await asyncio.to_thread(self._submit_in_thread, self._children(jobs))
        self.submitted.extend(found)
        return found

    def _submit_in_thread(self, children: Sequence[NewJob]) -> list[Submitted]:
        with self.resources.pool.lend() as database:
            return submit(database.connection(), self.resources.job_types, children, self.now)
