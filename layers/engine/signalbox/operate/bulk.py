"""Change many jobs in batches, each a short transaction with its line in the audit log.

A bulk action makes one pass. It leaves jobs that a worker holds at that moment, or that no time was left for, and says
that there is more: the caller asks again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import psycopg

from signalbox.budget import Budget
from signalbox.errors import TransitionRefused
from signalbox.jobs.retry_routing import LOST_AFTER
from signalbox.jobs.status import JobStatus
from signalbox.operate import audit
from signalbox.operate.audit import Actor
from signalbox.operate.filters import JobFilter
from signalbox.operate.listing import batches
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
WAITING = (JobStatus.PENDING, JobStatus.QUEUED, JobStatus.PAUSED)
# A bulk action sends at most this many due jobs itself; dispatch_jobs, each minute, sends the rest.
SENT_AT_ONCE = 1000
LOCK_TIMEOUT_MS = "2000"


@dataclass(frozen=True, slots=True)
class BatchResult:
    """Describe what a batch did: its counts, which jobs changed, and which are to be sent."""

    counts: Mapping[str, int]
    changed: Sequence[str]
    due: Sequence[str] = ()
    followers: Sequence[str] = ()  # dependents that changed with them


@dataclass(frozen=True, slots=True)
class BulkStep:
    """Say what a bulk action does to the jobs in certain states."""

    statuses: Sequence[str]
    # The jobs, and how long dispatch_jobs should leave those that become due to the caller.
    act: Callable[[Sequence[str], timedelta], BatchResult]


@dataclass(frozen=True, slots=True)
class BulkResult:
    """Describe what a bulk action did."""

    counts: dict[str, int]
    due: list[str]  # to be sent now that all is committed
    more: bool


@dataclass(frozen=True, slots=True)
class BulkContext:
    """Say who acts, how long it may take, and what to call with the changed jobs after each commit."""

    by: Actor
    budget: Budget
    announce: Callable[[Sequence[str]], None] = lambda _: None


@dataclass(slots=True)
class BulkAction:
    """Run one bulk action."""

    db: Connection
    job_filter: JobFilter
    context: BulkContext
    action: str
    counts: Counter[str] = field(default_factory=Counter)
    due: list[str] = field(default_factory=list)
    row: int | None = None  # of the audit log; jobs that are named one by one have a row each

    def run(self, *steps: BulkStep) -> BulkResult:
        """Make one pass over the jobs. Say that there is more if others held some, or time was up."""
        if self.job_filter.ids is None:
            self.row = audit.note(
                self.db, self.context.by, self.action, kind="jobs", detail={"selection": self.job_filter.given}
            )
        missed = 0
        for step in steps:
            for ids in batches(self.db, self.job_filter, step.statuses, self.context.budget):
                missed += len(ids) - self._batch(step, ids)
        return BulkResult(dict(self.counts), self.due, more=missed > 0 or self.context.budget.spent)

    def _batch(self, step: BulkStep, ids: Sequence[str]) -> int:
        """Return to how many of these jobs the step was applied."""
        try:
            with refusals_in_words(), self.db.transaction():
                locked = self._lock(step, ids)
                if not locked:
                    return 0
                result = step.act(locked, LOST_AFTER if len(self.due) < SENT_AT_ONCE else timedelta(0))
                self._note(result)
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            return 0
        self.context.announce([*result.changed, *result.followers])
        self.counts.update(result.counts)
        self.due += result.due[: SENT_AT_ONCE - len(self.due)]
        return len(locked)

    def _lock(self, step: BulkStep, ids: Sequence[str]) -> list[str]:
        """Skip the jobs that other transactions hold, and wait only where they hold all of them."""
        self.db.execute(SQL["limit_waiting"], {"milliseconds": LOCK_TIMEOUT_MS})
        values = {"ids": list(ids), "statuses": [*map(str, step.statuses)]}
        for query in ("lock", "lock_patiently"):
            if locked := self.db.execute(SQL[query], values).fetchall():
                return [id_ for (id_,) in locked]
        return []

    def _note(self, result: BatchResult) -> None:
        if self.row is None:
            audit.note_each(self.db, self.context.by, self.action, kind="job", ids=result.changed)
        elif result.changed:
            audit.count_up(self.db, self.row, result.counts)


@contextmanager
def refusals_in_words() -> Iterator[None]:
    """Raise an error of ours for what the database's own table of transitions refuses."""
    try:
        yield
    except psycopg.errors.CheckViolation as error:
        if error.diag.constraint_name != "job_transition_known":
            raise
        raise TransitionRefused(f"{error.diag.message_primary}; nothing of this result was changed") from None


def ids_of(rows: Sequence[Any]) -> list[str]:
    return [row[0] for row in rows]
