"""What a job receives: its payload, the world it works on, and the ways to say how far it is."""

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
    """How far the job is, for the heartbeat to write; and what the heartbeat has heard."""

    percent: int | None = None
    message: str | None = None
    cancel_asked: bool = False


@dataclass(frozen=True, slots=True)
class JobContext:
    """One attempt's view of the world."""

    job: ClaimedJob
    payload: Any  # the type's own model
    now: datetime
    budget: Budget  # until the job's own time-out
    resources: Resources
    progress: JobProgress
    submitted: list[Submitted]  # to be sent once the job has ended
    connect: Callable[[], Connection]
    reader: Any = None  # of a role that can only read, where the stack has one

    @property
    def db(self) -> Connection:
        """Of a transactional job: everything on it commits together with the job's end. Of one that runs beside others
        in a thread: `execute`, `cursor` and `transaction` borrow a connection each time."""
        return self.connect()

    @property
    def reading(self) -> Connection:
        """For what only reads: of a role that can do nothing else, where the stack has one."""
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
        """Where the job's last piece ended, as it said with More; None in its first."""
        return self.job.cursor

    @property
    def key(self) -> str:
        """The same in each attempt: the idempotency key for whatever is called outside."""
        return self.job.id

    def report(self, percent: int, message: str | None = None) -> None:
        """Says how far the job is; the next heartbeat writes it down."""
        self.progress.percent = min(100, max(0, int(percent)))
        self.progress.message = None if message is None else clean(str(message))

    def check_cancelled(self) -> None:
        """Raises where somebody has asked for the job to be cancelled: to be called where stopping does no harm."""
        if self.progress.cancel_asked:
            raise JobCancelled("cancelled while it ran, as was asked for")

    def submit(self, jobs: Sequence[NewJob]) -> list[Submitted]:
        """Submits further jobs, by default as children of this one; of a transactional job they commit with its end."""
        db = self.db
        lent: Any = db  # by a type that its jobs see as a connection
        with lent.connection() if isinstance(lent, LentConnection) else nullcontext(db) as connection:
            found = submit(connection, self.resources.job_types, self._children(jobs), self.now)
        self.submitted.extend(found)
        return found

    def _children(self, jobs: Sequence[NewJob]) -> list[NewJob]:
        return [replace(new, parent_id=new.parent_id or self.job.id) for new in jobs]


class AsyncJobContext(JobContext):
    """What an `async def` job receives. What blocks goes through a thread: `await asyncio.to_thread(…)`."""

    __slots__ = ()

    @property
    def db(self) -> AsyncLentConnection:  # type: ignore[override]
        """Each statement and each transaction on a connection of the event loop's own."""
        return self.connect()  # type: ignore[return-value]

    async def submit(self, jobs: Sequence[NewJob]) -> list[Submitted]:  # type: ignore[override]
        """Submits further jobs, by default as children of this one, in a transaction of their own."""
        found = await asyncio.to_thread(self._submit_in_thread, self._children(jobs))
        self.submitted.extend(found)
        return found

    def _submit_in_thread(self, children: Sequence[NewJob]) -> list[Submitted]:
        with self.resources.pool.lend() as database:
            return submit(database.connection(), self.resources.job_types, children, self.now)
