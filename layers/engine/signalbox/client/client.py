"""Submit jobs in an application's own transaction, and send them once that is committed.

Importing the client loads neither AWS's libraries nor those of functions. What is not sent, for whatever reason, the
task `dispatch_jobs` sends with its next run, from five seconds after the submit on.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from signalbox.client.connections import borrow
from signalbox.client.sender import Sender
from signalbox.engine_pack import ENGINE, load_packs
from signalbox.packs.pack import Pack
from signalbox.packs.registries import JobTypeRegistry
from signalbox.submit.insert import submit
from signalbox.submit.new_job import NewJob, Submitted

# How long `dispatch_jobs` leaves a new job to the client, which may be unable to send it, or not be asked to.
UNSENT_AFTER = timedelta(seconds=5)


class Client:
    """Submit jobs. One client serves a whole process, including all of its threads.

    `stack` is the name of the stack to which the jobs are sent, by default that in SIGNALBOX_STACK. Without a name the
    client sends nothing. `packs` bring job types beside the engine's own; by default they are the packages that
    SIGNALBOX_PACKS names, as for the functions.
    """

    def __init__(self, stack: str | None = None, packs: Sequence[Pack] | None = None) -> None:
        self._packs = packs
        self._sender = Sender(stack or os.environ.get("SIGNALBOX_STACK"))

    def submit(self, connection: Any, jobs: Sequence[NewJob]) -> list[Submitted]:
        """Store the jobs in the transaction of the connection, all of them or none, in the order given.

        The connection is one of psycopg 3, of SQLAlchemy or of Django, or a session of SQLAlchemy. A session, Django,
        and a connection in autocommit let the client know of the commit, and it sends the jobs then. After the commit
        of any other connection, hand the answer to `send`.
        """
        borrowed = borrow(connection)
        submitted = submit(borrowed.driver, self.job_types, jobs, datetime.now(UTC), UNSENT_AFTER)
        borrowed.after_commit(lambda: self.send(submitted))
        return submitted

    def send(self, submitted: Sequence[Submitted]) -> int:
        """Send the jobs that need not wait; return how many were. Call it after the commit, or not at all.

        It does not raise when AWS is unavailable, and sending twice changes nothing.
        """
        return self._sender.send(submitted)

    @cached_property
    def job_types(self) -> JobTypeRegistry:
        """Return the job types that may be submitted."""
        names = [name.strip() for name in os.environ.get("SIGNALBOX_PACKS", "").split(",") if name.strip()]
        packs = load_packs(names) if self._packs is None else (ENGINE, *self._packs)
        return JobTypeRegistry.of(packs)
