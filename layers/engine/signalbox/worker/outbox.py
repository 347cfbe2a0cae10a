"""Publish what an invocation has committed: messages to the lanes, changes of jobs to the event bus.

This happens each second beside the driver, since SQS takes its time, and at the end for the rest. dispatch_jobs sends
what could not be sent.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Thread
from typing import TYPE_CHECKING

import psycopg

from signalbox.errors import SignalboxError
from signalbox.jobs.job import ClaimedJob
from signalbox.jobs.job_message import JobMessage
from signalbox.jobs.retry_routing import goes_by_message
from signalbox.postgres.connection import Connection
from signalbox.publish.status_events import StatusEvent
from signalbox.submit.new_job import Submitted
from signalbox.worker.attempt import CONNECTION_PATIENCE_SECONDS, AttemptResult
from signalbox.worker.lease import EndedJob

if TYPE_CHECKING:
    from signalbox.invocation import Resources

PUBLISH_EVERY_SECONDS = 1.0


@dataclass(slots=True)
class Unpublished:
    """Collect what waits to be published."""

    messages: list[JobMessage] = field(default_factory=list)
    changes: list[StatusEvent] = field(default_factory=list)
    followers: list[str] = field(default_factory=list)  # jobs that waited for those that ended
    submitted: list[Submitted] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.messages or self.changes or self.followers or self.submitted)


class Outbox:
    """Publish for one invocation; `jobs` are all that have begun."""

    def __init__(self, resources: Resources, jobs: Mapping[str, ClaimedJob]) -> None:
        self._resources, self._jobs = resources, jobs
        self._waiting = Unpublished()
        self._delays: dict[str, timedelta] = {}  # the delays of jobs that are tried again
        self._thread: Thread | None = None
        self._published_at = time.monotonic()

    def send(self, messages: Sequence[JobMessage]) -> None:
        self._waiting.messages += messages

    def note(self, changed: Iterable[tuple[str, str]]) -> None:
        """Note jobs and their new states."""
        if not self._resources.settings.event_bus:
            return
        jobs = ((self._jobs[id_], status) for id_, status in changed)
        self._waiting.changes += [
            StatusEvent(job.id, job.job_type, job.lane, job.tenant, status, job.attempt) for job, status in jobs
        ]

    def add(self, outcome: AttemptResult) -> None:
        """Note what an attempt has submitted, and how long its job waits for the next one."""
        self._waiting.submitted += outcome.attempt.submitted
        if outcome.verdict.status == "pending":
            self._delays[outcome.attempt.job.id] = outcome.verdict.delay

    def follow(self, changed: Sequence[EndedJob]) -> None:
        """Note what to publish for ends that have been recorded."""
        for id_, status, follows in changed:
            if follows:
                self._waiting.followers.append(id_)
            elif status == "pending" and goes_by_message(self._delays[id_]):
                job = self._jobs[id_]
                self._waiting.messages.append(JobMessage(id_, job.job_type, job.lane, job.tenant, self._delays[id_]))
        self.note((id_, status) for id_, status, follows in changed if not follows)

    def publish_beside(self) -> None:
        """Publish what waits, in a thread, if it is time and the last thread is done."""
        if not self._waiting or time.monotonic() < self._published_at + PUBLISH_EVERY_SECONDS:
            return
        if self._thread is None or not self._thread.is_alive():
            waiting, self._waiting = self._waiting, Unpublished()
            self._published_at = time.monotonic()
            self._thread = Thread(target=self._publish_in_thread, args=(waiting,), name="publisher", daemon=True)
            self._thread.start()

    def join(self) -> None:
        """Wait for the thread."""
        if self._thread is not None:
            self._thread.join()

    def publish_rest(self, db: Connection, missed: Sequence[str]) -> None:
        """Publish all that waits, and the new states of jobs that a claim did not begin."""
        self._publish(db, self._waiting)
        if missed:
            self._resources.publisher.publish_held(db, missed)

    def _publish_in_thread(self, waiting: Unpublished) -> None:
        try:
            with self._resources.pool.lend(CONNECTION_PATIENCE_SECONDS) as database:
                self._publish(database.connection(), waiting)
        except (psycopg.Error, SignalboxError) as error:
            self._resources.log.warning("messages.not_sent", extra={"error": type(error).__name__})

    def _publish(self, db: Connection, waiting: Unpublished) -> None:
        publisher = self._resources.publisher
        publisher.send(waiting.messages)
        publisher.publish_status(waiting.changes)
        publisher.publish_submitted(waiting.submitted)
        if waiting.followers:
            publisher.send_due(db, waiting.followers)
            publisher.publish_failed_dependents(db, waiting.followers)
