"""Take back the jobs whose worker died, each minute: their lease has run out without being renewed.

Each is tried again at once, alone in its worker, since something in it may be what kills workers. A job without
attempts left becomes a dead letter, and a job whose cancellation was requested is cancelled.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import psycopg

from signalbox.errors import JobTypeUnknown
from signalbox.jobs.end_record import EndRecord, to_array
from signalbox.jobs.job_message import JobMessage
from signalbox.jobs.verdict import Failure, Verdict, fingerprint
from signalbox.ledger.context import Context, Done
from signalbox.packs.job_type import JobType
from signalbox.packs.registries import JobTypeRegistry
from signalbox.postgres.queries import load_queries
from signalbox.publish import held_jobs

SQL = load_queries(__file__)
BATCH = 500
# Spread the messages, yet send all within 90 seconds of the crash.
SPREAD_SECONDS = 10
# A lease that runs out this soon was not renewed with the last heartbeat, which would leave it 45 seconds.
SILENT_WITHIN = timedelta(seconds=40)
_LEAST_ID = str(uuid.UUID(int=0))


@dataclass(frozen=True, slots=True)
class Lost:
    """Describe a job without its worker, as list_lost finds it."""

    id: str
    job_type: str
    lane: str
    tenant: str | None
    attempt: int
    max_attempts: int
    worker_id: str
    token: str
    unwanted: bool
    notes: dict[str, Any] | None  # as of its last heartbeat

    @property
    def message(self) -> JobMessage:
        return JobMessage(self.id, self.job_type, self.lane, self.tenant)

    @property
    def ids(self) -> dict[str, Any]:
        """Return the fields that identify it in the log."""
        return {"job_id": self.id, "job_type": self.job_type, "attempt": self.attempt, "worker_id": self.worker_id}


def rescue_jobs(context: Context) -> Done:
    """Take jobs back; items are these jobs. A job that can't be taken back is reported after all others."""
    rescue = Rescue(context)
    more = rescue.run()
    if rescue.rescued:
        context.metrics.count("JobsRescued", rescue.rescued)
    if rescue.trouble:
        raise rescue.trouble
    return Done(rescue.rescued, more=more)


def judge(job_types: JobTypeRegistry, job: Lost) -> Verdict:
    """Return the verdict for a lost job."""
    error = {
        "type": "WorkerLost",
        "message": f"the worker '{job.worker_id}' vanished in attempt {job.attempt} of {job.max_attempts}: it was "
        "killed, or ran out of memory or time; see the worker's log for the job's last steps",
    }
    if job.unwanted:
        return Verdict("cancelled", "lost", error=error)
    if job.attempt < job.max_attempts:
        return Verdict("pending", "lost", error=error)
    failure = Failure("lost", fingerprint(job.job_type, error), _type_of(job_types, job.job_type).severity)
    return Verdict("failed", "lost", error=error, failure=failure)


def _type_of(job_types: JobTypeRegistry, name: str) -> JobType:
    """Return the job's type. A type whose pack was removed has the default settings."""
    try:
        return job_types.find(name).type
    except JobTypeUnknown:
        return JobType(name, "unknown", "")


@dataclass(slots=True)
class Rescue:
    """Run once, and keep what was taken back, and what could not be."""

    context: Context
    rescued: int = 0
    trouble: psycopg.Error | None = None

    def run(self) -> bool:
        """Return whether the budget ended before the work did."""
        more = self._sweep()
        if seconds := self._silent_for():
            # Wait now rather than for the next run: the jobs would wait for up to two minutes.
            time.sleep(min(seconds, self.context.budget.seconds_left))
            more = self._sweep() or more
        if self.rescued:  # the lost ones have left room under their caps
            holding = held_jobs.list_holding(self.context.db)
            self.context.publisher.send(held_jobs.next_held(self.context.db, holding))
        return more

    def _sweep(self) -> bool:
        after = _LEAST_ID
        while not self.context.budget.spent:
            rows = self.context.db.execute(SQL["list_lost"], {"after": after, "batch": BATCH}).fetchall()
            if rows:
                self._end_or_part([Lost(*row) for row in rows])
            if len(rows) < BATCH:
                return False
            after = rows[-1][0]
        return True

    def _silent_for(self) -> float:
        """Return for how many more seconds workers that have missed a heartbeat hold leases."""
        row = self.context.db.execute(SQL["find_silent"], {"within": SILENT_WITHIN}).fetchone()
        return float(row[0]) if row is not None and row[0] is not None else 0.0

    def _end_or_part(self, jobs: Sequence[Lost]) -> None:
        """End the jobs. A job that the database won't change, or that is locked, must not hold up the others."""
        try:
            self._end(jobs)
        except psycopg.errors.LockNotAvailable as error:
            self._part(jobs, error)
        except psycopg.OperationalError:
            raise
        except psycopg.Error as error:
            self._part(jobs, error)

    def _part(self, jobs: Sequence[Lost], error: psycopg.Error) -> None:
        if len(jobs) > 1:
            middle = len(jobs) // 2
            self._end_or_part(jobs[:middle])
            self._end_or_part(jobs[middle:])
        else:
            self.trouble = error
            self.context.log.error("job.not_rescued", extra=jobs[0].ids | {"error": str(error)})

    def _end(self, jobs: Sequence[Lost]) -> None:
        verdicts = {job.id: judge(self.context.job_types, job) for job in jobs}
        ends = to_array(EndRecord(job.id, job.token, verdicts[job.id], notes=job.notes) for job in jobs)
        rows = self.context.db.execute(SQL["end"], {"ends": ends}).fetchall()
        became = {id_: status for id_, status, follows in rows if not follows}
        followers = [id_ for id_, _, follows in rows if follows]
        self.rescued += len(became)
        for job in jobs:
            if job.id in became:
                self.context.log.warning("job.rescued", extra=job.ids | {"becomes": became[job.id]})
        publisher, db = self.context.publisher, self.context.db
        # Spread in time, so that each finds its own worker: they run alone.
        again = [job for job in jobs if became.get(job.id) == "pending"]
        publisher.send(
            [replace(job.message, delay=timedelta(seconds=place % SPREAD_SECONDS)) for place, job in enumerate(again)]
        )
        publisher.publish_status_of(db, list(became))
        publisher.publish_failed_dependents(db, followers)
        publisher.send_due(db, followers)
