"""Publish what has been committed: messages to the lanes, and changes of jobs' statuses to the bus.

A refusal by AWS raises nothing, since what is committed stays so. dispatch_jobs sends what can't be sent now, and an
event is published once or not at all.
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
    """Publish for one stack. Without a bus, look up nothing that only an event needs."""

    clients: Clients
    stack: str
    bus: str | None
    log: Logger
    events: str = "all"

    def send(self, messages: Sequence[JobMessage]) -> int:
        """Send the messages, and return how many SQS took."""
        if not messages:
            return 0
        try:
            return Lanes(self.clients, self.stack).send(messages)
        except SignalboxError as error:
            self.log.warning("messages.not_sent", extra={"number": len(messages), "error": str(error)})
            return 0

    def send_due(self, db: Connection, ids: Sequence[str]) -> int:
        """Send those of these jobs that may begin, and return how many SQS took."""
        return self.send(read_due_messages(db, ids)) if ids else 0

    def publish_status(self, changes: Sequence[StatusEvent]) -> None:
        if self.events != "all":
            changes = [change for change in changes if self.events == "ends" and change.status in FINAL]
        publish_events(self.clients, self.bus, changes, self.log)

    def publish_status_of(self, db: Connection, ids: Sequence[str]) -> None:
        """Publish the status of these jobs, but of running ones: their worker does that."""
        self._publish(db, "read_changes", ids)

    def publish_failed_dependents(self, db: Connection, ids: Sequence[str]) -> None:
        """Publish dependents that failed or were cancelled by these jobs; released ones wait for a worker."""
        self._publish(db, "read_fallen", ids)

    def publish_held(self, db: Connection, ids: Sequence[str]) -> None:
        """Publish the jobs that a claim has paused or put off."""
        self._publish(db, "read_held", ids)

    def publish_submitted(self, submitted: Sequence[Submitted]) -> int:
        """Publish and send new jobs; return how many were sent."""
        new = [one for one in submitted if one.created]
        self.publish_status([StatusEvent(one.id, one.job_type, one.lane, one.tenant, one.status) for one in new])
        return self.send(messages_of(new))

    def _publish(self, db: Connection, query: str, ids: Sequence[str]) -> None:
        if self.bus and self.events != "none" and ids:
            self.publish_status([StatusEvent(*row) for row in db.execute(SQL[query], {"ids": list(ids)}).fetchall()])


def read_due_messages(db: Connection, ids: Sequence[str]) -> list[JobMessage]:
    """Return the messages of those of these jobs that may begin."""
    return [JobMessage(*row) for row in db.execute(SQL["read_due"], {"ids": list(ids)}).fetchall()]


def messages_of(submitted: Sequence[Submitted]) -> list[JobMessage]:
    """Return the messages to send once the jobs are committed: for those that are new and need not wait."""
    return [
        JobMessage(new.id, new.job_type, new.lane, new.tenant)
        for new in submitted
        if new.created and new.status == "queued"
    ]
