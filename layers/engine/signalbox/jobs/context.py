"""What a job receives: its payload, the world it works on, and the ways to say how far it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from signalbox.budget import Budget
from signalbox.clients import Clients
from signalbox.database import Connection
from signalbox.jobs.job import Job
from signalbox.jobs.outcome import JobCancelled
from signalbox.jobs.submission import NewJob, Submitted, submit
from signalbox.log import Logger
from signalbox.storable import clean

if TYPE_CHECKING:
    from signalbox.invocation import Tools


@dataclass(slots=True)
class Progress:
    """How far the job is, for the heartbeat to write; and what the heartbeat has heard."""

    percent: int | None = None
    message: str | None = None
    cancel_asked: bool = False


@dataclass(frozen=True, slots=True)
class JobContext:
    """One attempt's view of the world."""

    job: Job
    payload: Any  # the type's own model
    now: datetime
    budget: Budget  # until the job's own time-out
    tools: Tools
    progress: Progress
    submitted: list[Submitted]  # to be sent once the job has ended
    connection: Connection | None = None  # of a transactional job, which has one and no other

    @property
    def db(self) -> Connection:
        """Of a transactional job: everything on it commits together with the job's end."""
        return self.connection if self.connection is not None else self.tools.database.connection()

    @property
    def reading(self) -> Connection:
        """For what only reads: of a role that can do nothing else, where the stack has one."""
        return self.tools.reader.connection() if self.tools.reader is not None else self.db

    @property
    def clients(self) -> Clients:
        return self.tools.clients

    @property
    def log(self) -> Logger:
        return self.tools.log

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
        children = [replace(new, parent_id=new.parent_id or self.job.id) for new in jobs]
        found = submit(self.db, self.tools.catalogue, children, self.now)
        self.submitted.extend(found)
        return found
