"""Takes back the jobs whose worker vanished, each minute: their lease has run out, and nobody gave it back.

Each is tried again after its type's backoff; one that has no attempts left is buried as poison, since something in it
may be what kills its workers. One whose cancellation was asked for is cancelled.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import ceil
from operator import attrgetter
from typing import Any

import psycopg

from signalbox.context import Context, Done
from signalbox.errors import JobTypeUnknown
from signalbox.jobs.catalogue import Catalogue
from signalbox.jobs.job_type import JobType
from signalbox.jobs.lanes import LONGEST_DELAY_SECONDS, Notice
from signalbox.jobs.retry_policy import next_delay
from signalbox.jobs.verdict import Verdict, as_json, fingerprint
from signalbox.queries import load_queries

SQL = load_queries(__file__)
BATCH = 500
_LEAST_ID = str(uuid.UUID(int=0))


@dataclass(frozen=True, slots=True)
class Lost:
    """A job without its worker, as list_lost finds it."""

    id: str
    job_type: str
    lane: str
    tenant: str | None
    execution: int
    attempt: int
    max_attempts: int
    worker_id: str
    token: uuid.UUID
    unwanted: bool

    @property
    def ids(self) -> dict[str, Any]:
        """For the log."""
        return {"job_id": self.id, "job_type": self.job_type, "attempt": self.attempt, "worker_id": self.worker_id}


def rescue_jobs(context: Context) -> Done:
    """Items are the jobs taken back. One that can't be is reported at the end, after all others."""
    rescue = Rescue(context)
    more = rescue.run()
    if rescue.rescued:
        context.metrics.count("JobsRescued", rescue.rescued)
    if rescue.trouble:
        raise rescue.trouble
    return Done(rescue.rescued, more=more)


def by_lease(jobs: Sequence[Lost]) -> Iterator[list[Lost]]:
    """The jobs of each worker: they are ended by the token that it held."""
    for _, found in groupby(sorted(jobs, key=attrgetter("token")), attrgetter("token")):
        yield list(found)


def judge(catalogue: Catalogue, job: Lost, chance: float) -> Verdict:
    """What becomes of it."""
    error = {
        "type": "WorkerLost",
        "message": f"the worker '{job.worker_id}' vanished in attempt {job.attempt} of {job.max_attempts}: it was "
        "killed, or ran out of memory or time; what the job does then is worth a look in the worker's log",
    }
    if job.unwanted:
        return Verdict("cancelled", "lost", error=error)
    job_type = _type_of(catalogue, job.job_type)
    if job.attempt < job.max_attempts:
        return Verdict("pending", "lost", delay=next_delay(job_type.retry, job.attempt, chance), error=error)
    kind = fingerprint(job.job_type, error)
    return Verdict("failed", "lost", error=error, reason="poison", fingerprint=kind, severity=job_type.severity)


def _type_of(catalogue: Catalogue, name: str) -> JobType:
    """A type whose pack has been taken out is treated as one that says nothing of itself."""
    try:
        return catalogue.find(name).type
    except JobTypeUnknown:
        return JobType(name, "unknown", "")


@dataclass(slots=True)
class Rescue:
    """One run: what it has taken back, what is to be sent for it, and what it could not."""

    context: Context
    rescued: int = 0
    notices: list[Notice] = field(default_factory=list)
    trouble: psycopg.Error | None = None

    def run(self) -> bool:
        """Answers whether the budget ended before the work did."""
        after = _LEAST_ID
        while not self.context.budget.spent:
            rows = self.context.db.execute(SQL["list_lost"], {"after": after, "batch": BATCH}).fetchall()
            for jobs in by_lease([Lost(*row) for row in rows]):
                self._end_or_part(jobs)
            self.context.courier.send(self.notices)
            self.notices.clear()
            if len(rows) < BATCH:
                return False
            after = rows[-1][0]
        return True

    def _end_or_part(self, jobs: Sequence[Lost]) -> None:
        """One job that the database won't change must not hold the others of its worker."""
        try:
            self._end(jobs)
        except psycopg.OperationalError:
            raise
        except psycopg.Error as error:
            if len(jobs) > 1:
                for job in jobs:
                    self._end_or_part([job])
            else:
                self.trouble = error
                self.context.log.error("job.not_rescued", extra=jobs[0].ids | {"error": str(error)})

    def _end(self, jobs: Sequence[Lost]) -> None:
        """All jobs of one lease."""
        verdicts = {job.id: judge(self.context.catalogue, job, random.random()) for job in jobs}  # noqa: S311
        records = [f'{{"id":"{job.id}","number":{job.execution},{as_json(verdicts[job.id])[1:]}' for job in jobs]
        values = {"token": jobs[0].token, "verdicts": f"[{','.join(records)}]"}
        rows = self.context.db.execute(SQL["end"], values).fetchall()
        became = {id_: status for id_, status, follows in rows if not follows}
        followers = [id_ for id_, _, follows in rows if follows]
        self.rescued += len(became)
        for job in jobs:
            if job.id in became:
                self.context.log.warning("job.rescued", extra=job.ids | {"becomes": became[job.id]})
            if became.get(job.id) == "pending":
                self._notify(job, verdicts[job.id].delay.total_seconds())
        courier, db = self.context.courier, self.context.db
        courier.tell_of(db, list(became))
        courier.tell_of_fallen(db, followers)
        courier.send_due(db, followers)

    def _notify(self, job: Lost, seconds: float) -> None:
        """With the delay that the retry waits; dispatch_jobs sees to longer ones. SQS counts whole seconds: up."""
        if seconds <= LONGEST_DELAY_SECONDS:
            self.notices.append(Notice(job.id, job.job_type, job.lane, job.tenant, ceil(seconds)))
