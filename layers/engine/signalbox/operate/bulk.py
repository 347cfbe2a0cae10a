"""An operator's order about many jobs, carried out in batches, each a short transaction with its line in the audit log.

A batch passes by what a worker is just at; the rounds after it wait a moment for those. An order that its function has
no time left for says that there is more: given again it goes on.
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
from signalbox.errors import TransitionRefused, Unavailable
from signalbox.jobs.status import JobStatus
from signalbox.operate import audit
from signalbox.operate.audit import Actor
from signalbox.operate.filters import JobFilter
from signalbox.operate.listing import batches
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries
from signalbox.submit.insert import LOST_AFTER

SQL = load_queries(__file__)
WAITING = (JobStatus.PENDING, JobStatus.QUEUED, JobStatus.PAUSED)
# So many due jobs an order sends itself; dispatch_jobs, each minute, sends the rest.
SENT_AT_ONCE = 1000
_BRIEFLY, _PATIENTLY = "250", "2000"  # milliseconds
_ROUNDS_IN_VAIN = 5


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What a batch came to: how many of what, which jobs changed, and which are to be sent."""

    counts: Mapping[str, int]
    changed: Sequence[str]
    due: Sequence[str] = ()
    followers: Sequence[str] = ()  # that changed with them, by no order of their own


@dataclass(frozen=True, slots=True)
class BulkStep:
    """What an order does to the jobs in certain states."""

    statuses: Sequence[str]
    # The jobs, and how long dispatch_jobs should leave those that become due to whoever gave the order.
    act: Callable[[Sequence[str], timedelta], BatchResult]


@dataclass(frozen=True, slots=True)
class BulkResult:
    """What an order came to."""

    counts: dict[str, int]
    due: list[str]  # to be sent now that all is committed
    more: bool


@dataclass(frozen=True, slots=True)
class BulkContext:
    """By whom an order is given, how long it may take, and who is told which jobs it has changed, after each commit."""

    by: Actor
    budget: Budget
    announce: Callable[[Sequence[str]], None] = lambda _: None


@dataclass(slots=True)
class BulkAction:
    """One order on its way."""

    db: Connection
    job_filter: JobFilter
    context: BulkContext
    action: str
    counts: Counter[str] = field(default_factory=Counter)
    due: list[str] = field(default_factory=list)
    row: int | None = None  # of the audit log; jobs that are named one by one have a row each

    def run(self, *stages: BulkStep) -> BulkResult:
        """Round by round, since a job may pass from one stage's states to another's meanwhile."""
        if self.job_filter.ids is None:
            self.row = audit.note(
                self.db, self.context.by, self.action, kind="jobs", detail={"selection": self.job_filter.given}
            )
        patient, in_vain = False, 0
        while not self.context.budget.spent:
            changed, missed = self._round(stages, patient=patient)
            if not changed and not missed:
                return self._done(more=False)
            in_vain = 0 if changed else in_vain + 1
            if in_vain > _ROUNDS_IN_VAIN:
                raise Unavailable(
                    f"{missed:,} of the jobs are held by other transactions; what was done is done "
                    f"({self._told}), so give the same order again for the rest"
                )
            patient = True
        return self._done(more=True)

    def _round(self, stages: Sequence[BulkStep], *, patient: bool) -> tuple[int, int]:
        changed = missed = 0
        for stage in stages:
            for ids in batches(self.db, self.job_filter, stage.statuses, self.context.budget):
                step, held = self._batch(stage, ids, patient=patient)
                missed += len(ids) - held
                if step is not None:
                    changed += len(step.changed)
                    self.context.announce([*step.changed, *step.followers])
                    self.counts.update(step.counts)
                    self.due += step.due[: SENT_AT_ONCE - len(self.due)]
        return changed, missed

    def _batch(self, stage: BulkStep, ids: Sequence[str], *, patient: bool) -> tuple[BatchResult | None, int]:
        """None where others held what it needs."""
        query = SQL["hold_patiently" if patient else "hold"]
        try:
            with refusals_in_words(), self.db.transaction():
                self.db.execute(SQL["wait_briefly"], {"milliseconds": _PATIENTLY if patient else _BRIEFLY})
                values = {"ids": list(ids), "statuses": [*map(str, stage.statuses)]}
                held = [id_ for (id_,) in self.db.execute(query, values).fetchall()]
                if not held:
                    return None, 0
                step = stage.act(held, LOST_AFTER if len(self.due) < SENT_AT_ONCE else timedelta(0))
                self._note(step)
            return step, len(held)
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            return None, 0

    def _note(self, step: BatchResult) -> None:
        if self.row is None:
            audit.note_each(self.db, self.context.by, self.action, kind="job", ids=step.changed)
        elif step.changed:
            audit.count_up(self.db, self.row, step.counts)

    def _done(self, *, more: bool) -> BulkResult:
        return BulkResult(dict(self.counts), self.due, more)

    @property
    def _told(self) -> str:
        return ", ".join(f"{count:,} {name}" for name, count in self.counts.items() if count) or "nothing"


@contextmanager
def refusals_in_words() -> Iterator[None]:
    """What the database's own table of transitions refuses, as an error of ours."""
    try:
        yield
    except psycopg.errors.CheckViolation as error:
        if error.diag.constraint_name != "job_transition_known":
            raise
        raise TransitionRefused(f"{error.diag.message_primary}; nothing of this step was changed") from None


def ids_of(rows: Sequence[Any]) -> list[str]:
    return [row[0] for row in rows]
