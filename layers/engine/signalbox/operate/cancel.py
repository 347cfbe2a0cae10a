"""Cancel jobs: waiting jobs at once, with their dependents; running jobs are asked to stop.

A running job's worker learns of it by its heartbeat, and stops where the job checks for it. A job that ends by itself
first keeps its status, unless it would be tried again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from signalbox.errors import TransitionRefused
from signalbox.jobs.status import FINAL, JobStatus
from signalbox.operate.audit import Actor
from signalbox.operate.bulk import WAITING, BatchResult, BulkContext, BulkResult, BulkStep, ids_of, run_bulk_action
from signalbox.operate.filters import JobFilter
from signalbox.operate.listing import require_known, states_of
from signalbox.packs.registries import JobTypeRegistry
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)


@dataclass(frozen=True, slots=True)
class _Cancelling:
    db: Connection
    by: Actor

    def waiting(self, ids: Sequence[str], _: timedelta) -> BatchResult:
        why = f"cancelled by {self.by.name}" + (f": {self.by.reason}" if self.by.reason else "")
        self.db.execute(SQL["cancel_waiting"], {"ids": list(ids), "why": why})
        followers = ids_of(self.db.execute(SQL["resolve_dependents"], {"ids": list(ids)}).fetchall())
        released = ids_of(self.db.execute(SQL["find_released"], {"ids": followers}).fetchall()) if followers else []
        return BatchResult({"cancelled": len(ids)}, ids, released, followers)

    def running(self, ids: Sequence[str], _: timedelta) -> BatchResult:
        asked = ids_of(self.db.execute(SQL["ask_running"], {"ids": list(ids)}).fetchall())
        return BatchResult({"requested": len(asked)}, asked)


def cancel(db: Connection, job_types: JobTypeRegistry, job_filter: JobFilter, context: BulkContext) -> BulkResult:
    """Cancel jobs, and count `cancelled` and `requested`. Ended ones stay; refuse if all named ones have ended."""
    job_filter.require_any()
    require_known(db, job_types, job_filter)
    if job_filter.ids is not None:
        _refuse_ended(db, job_filter.ids)
    return run_bulk_action(db, job_filter, context, "cancel", cancel_steps(db, context.by))


def cancel_steps(db: Connection, by: Actor) -> list[BulkStep]:
    cancelling = _Cancelling(db, by)
    return [BulkStep(WAITING, cancelling.waiting), BulkStep([JobStatus.RUNNING], cancelling.running)]


def _refuse_ended(db: Connection, ids: Sequence[str]) -> None:
    states = states_of(db, ids)
    ended = {id_: state for id_, state in states.items() if state in FINAL}
    if ended and len(ended) == len(states):
        id_, state = next(iter(ended.items()))
        others = f", and {len(ended) - 1:,} others have ended, too" if len(ended) > 1 else ""
        raise TransitionRefused(f"job {id_} is {state}: it has ended and can't be cancelled{others}")
