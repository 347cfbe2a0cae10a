"""Change many jobs in batches, each a short transaction with its record.

A pass leaves jobs that a worker holds at that moment, and those that no time was left for. Of a filter, the action goes
on with them within a minute (tasks/advance_bulk_actions.py); of ids, the caller asks again.
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
from signalbox.operate import audit, bulk_actions
from signalbox.operate.audit import Actor
from signalbox.operate.bulk_actions import BulkAction, BulkActionStopped
from signalbox.operate.filters import JobFilter
from signalbox.operate.listing import batches, bound
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
WAITING = (JobStatus.PENDING, JobStatus.QUEUED, JobStatus.PAUSED)
# A bulk action sends at most this many due jobs itself; dispatch_jobs, each minute, sends the rest.
SENT_AT_ONCE = 1000
LOCK_TIMEOUT_MS = "2000"
_COUNTS = {
    "cancel": ("cancelled", "requested"),
    "retry": ("hastened",),
    "pause": ("paused",),
    "resume": ("resumed",),
    "resume_target": ("resumed",),
}


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
    id: str | None = None  # of the action, if it is kept


@dataclass(frozen=True, slots=True)
class BulkContext:
    """Say who acts, how long it may take, and what to call with the changed jobs after each commit."""

    by: Actor
    budget: Budget
    announce: Callable[[Sequence[str]], None] = lambda _: None


@dataclass(slots=True)
class BulkPass:
    """Make one pass over the jobs."""

    db: Connection
    job_filter: JobFilter
    context: BulkContext
    action: str
    steps: Sequence[BulkStep]
    kept: BulkAction | None = None  # of a filter; jobs that are named have a row each in the audit log
    counts: Counter[str] = field(default_factory=Counter)
    due: list[str] = field(default_factory=list)
    step: int = 0  # where the next batch begins
    before: str | None = None
    missed: int = 0

    def __post_init__(self) -> None:
        self.counts.update(dict.fromkeys(_COUNTS[self.action], 0))

    def run(self) -> BulkResult:
        """Walk over the jobs until none is missed, or all that were are held by others, or time is up."""
        if self.kept and self.kept.cursor:
            self.step, self.before, self.missed = (self.kept.cursor[name] for name in ("step", "before", "missed"))
        more, found = True, -1
        try:
            while more and not self.context.budget.spent and self.counts.total() != found:
                found = self.counts.total()
                more = not self._walk()
        except BulkActionStopped:
            more = False
        if self.kept:
            bulk_actions.leave(self.db, self.kept.id, cursor=self._cursor, done=not more)
        return BulkResult(dict(self.counts), self.due, more, self.kept.id if self.kept else None)

    def _walk(self) -> bool:
        """Walk to the end. Return whether all jobs were met; if not, the next walk begins at the first."""
        while self.step < len(self.steps):
            step = self.steps[self.step]
            for ids in batches(self.db, self.job_filter, step.statuses, self.context.budget, self.before):
                self.before = ids[-1]
                self._batch(step, ids)
            if self.context.budget.spent:
                return False
            self.step, self.before = self.step + 1, None
        missed, self.step, self.missed = self.missed, 0, 0
        return not missed

    @property
    def _cursor(self) -> dict[str, Any]:
        return {"step": self.step, "before": self.before, "missed": self.missed}

    def _batch(self, step: BulkStep, ids: Sequence[str]) -> None:
        """Apply the step to these jobs; note how many it missed, which the record of the batch has, too."""
        missed = self.missed + len(ids)
        try:
            with refusals_in_words(), self.db.transaction():
                locked = self._lock(step, ids)
                self.missed = missed - len(locked)
                if not locked:
                    return
                result = step.act(locked, LOST_AFTER if len(self.due) < SENT_AT_ONCE else timedelta(0))
                self._record(result)
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            self.missed = missed
            return
        self.context.announce([*result.changed, *result.followers])
        self.counts.update(result.counts)
        self.due += result.due[: SENT_AT_ONCE - len(self.due)]

    def _lock(self, step: BulkStep, ids: Sequence[str]) -> list[str]:
        """Skip the jobs that other transactions hold, and wait only where they hold all of them."""
        self.db.execute(SQL["limit_waiting"], {"milliseconds": LOCK_TIMEOUT_MS})
        values = {"ids": list(ids), "statuses": [*map(str, step.statuses)]}
        for query in ("lock", "lock_patiently"):
            if locked := self.db.execute(SQL[query], values).fetchall():
                return [id_ for (id_,) in locked]
        return []

    def _record(self, result: BatchResult) -> None:
        if self.kept is None:
            audit.note_each(self.db, self.context.by, f"job.{self.action}", kind="job", ids=result.changed)
        else:
            bulk_actions.record(self.db, self.kept.id, result.counts, cursor=self._cursor)


def run_bulk_action(
    db: Connection, job_filter: JobFilter, context: BulkContext, action: str, steps: Sequence[BulkStep]
) -> BulkResult:
    """Carry out an action on the jobs that are named, or make the first pass of one on all that a filter finds."""
    job_filter = bound(db, job_filter)
    kept = None if job_filter.ids else bulk_actions.create(db, action, job_filter, context.by, context.budget)
    return BulkPass(db, job_filter, context, action, steps, kept).run()


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
