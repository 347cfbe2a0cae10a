"""Carries to the world what has been committed: notices to the lanes, and each change of a job's status to the bus.

Never raises where AWS refuses, since what is committed stays so: what can't be sent now, dispatch_jobs sends, and an
event is told once or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from signalbox.aws.clients import Clients
from signalbox.errors import SignalboxError
from signalbox.jobs.job_message import JobMessage
from signalbox.jobs.status import FINAL
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries
from signalbox.publish.lanes import Lanes
from signalbox.publish.status_events import StatusEvent, publish_events
from signalbox.runtime.log import Logger
from signalbox.submit.new_job import Submitted

SQL = load_queries(__file__)


@dataclass(frozen=True, slots=True)
class Publisher:
    """A stack's; without a bus it looks up nothing that only an event would say."""

    clients: Clients
    stack: str
    bus: str | None
    log: Logger
    events: str = "all"

    def send(self, messages: Sequence[JobMessage]) -> int:
        """How many SQS took."""
        if not messages:
            return 0
        try:
            return Lanes(self.clients, self.stack).send(messages)
        except SignalboxError as error:
            self.log.warning("messages.not_sent", extra={"number": len(messages), "error": str(error)})
            return 0

    def send_due(self, db: Connection, ids: Sequence[str]) -> int:
        """Of these jobs, those that may begin."""
        return self.send(read_due_messages(db, ids)) if ids else 0

    def publish_status(self, changes: Sequence[StatusEvent]) -> None:
        if self.events != "all":
            changes = [change for change in changes if self.events == "ends" and change.status in FINAL]
        publish_events(self.clients, self.bus, changes, self.log)

    def publish_status_of(self, db: Connection, ids: Sequence[str]) -> None:
        """What these jobs have become; of one that runs, its worker tells."""
        self._publish(db, "read_changes", ids)

    def publish_failed_dependents(self, db: Connection, ids: Sequence[str]) -> None:
        """Of jobs that waited for others, those that these have taken along; the released ones wait for a worker."""
        self._publish(db, "read_fallen", ids)

    def publish_held(self, db: Connection, ids: Sequence[str]) -> None:
        """What a claim has made of the jobs that it did not get."""
        self._publish(db, "read_held", ids)

    def publish_submitted(self, submitted: Sequence[Submitted]) -> int:
        """New jobs; answers how many were sent."""
        new = [one for one in submitted if one.created]
        self.publish_status([StatusEvent(one.id, one.job_type, one.lane, one.tenant, one.status) for one in new])
        return self.send(messages_of(new))

    def _publish(self, db: Connection, query: str, ids: Sequence[str]) -> None:
        if self.bus and self.events != "none" and ids:
            self.publish_status([StatusEvent(*row) for row in db.execute(SQL[query], {"ids": list(ids)}).fetchall()])


def read_due_messages(db: Connection, ids: Sequence[str]) -> list[JobMessage]:
    """What is to be sent for those of these jobs that may begin."""
    return [JobMessage(*row) for row in db.execute(SQL["read_due"], {"ids": list(ids)}).fetchall()]


def messages_of(submitted: Sequence[Submitted]) -> list[JobMessage]:
    """What is to be sent once they are committed: those that are new and need not wait."""
    return [
        JobMessage(new.id, new.job_type, new.lane, new.tenant)
        for new in submitted
        if new.created and new.status == "queued"
    ]
