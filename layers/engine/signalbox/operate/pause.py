"""Pause jobs one by one or by filter, and resume them. Running jobs continue.

A job may be held twice: by a pause of its own, and by one of its type, lane, tenant or key. It goes on when both have
ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from signalbox.errors import TransitionRefused
from signalbox.jobs.status import JobStatus
from signalbox.operate.audit import Actor
from signalbox.operate.bulk import BatchResult, BulkContext, BulkResult, BulkStep, ids_of, run_bulk_action
from signalbox.operate.filters import JobFilter
from signalbox.operate.listing import count_by_status, require_known, states_of
from signalbox.packs.registries import JobTypeRegistry
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
MAY_PAUSE = (JobStatus.PENDING, JobStatus.QUEUED)


def pause(db: Connection, job_types: JobTypeRegistry, job_filter: JobFilter, context: BulkContext) -> BulkResult:
    """Pause the jobs, and count them as `paused`."""
    _check(db, job_types, job_filter, MAY_PAUSE, "paused: only a pending or queued job can be")
    return run_bulk_action(db, job_filter, context, "pause", pause_steps(db, context.by))


def pause_steps(db: Connection, by: Actor) -> list[BulkStep]:
    def step(ids: Sequence[str], _: timedelta) -> BatchResult:
        db.execute(SQL["pause"], {"ids": list(ids), "by": by.name})
        return BatchResult({"paused": len(ids)}, ids)

    return [BulkStep(MAY_PAUSE, step)]


def resume(db: Connection, job_types: JobTypeRegistry, job_filter: JobFilter, context: BulkContext) -> BulkResult:
    """Resume jobs. Count `resumed`, and `held`: those that a pause of their type, lane, tenant or key still holds."""
    _check(db, job_types, job_filter, (JobStatus.PAUSED,), "resumed: only a paused job can be")
    done = run_bulk_action(db, job_filter, context, "resume", resume_steps(db, context.by))
    return with_held(db, job_filter, done)


def resume_steps(db: Connection, _: Actor) -> list[BulkStep]:
    return [BulkStep((JobStatus.PAUSED,), _Resuming(db, own=True).step)]


def resume_target_steps(db: Connection, _: Actor) -> list[BulkStep]:
    """Leave the jobs paused that have a pause of their own."""
    return [BulkStep((JobStatus.PAUSED,), _Resuming(db, own=False).step)]


@dataclass(frozen=True, slots=True)
class _Resuming:
    """Resume a batch of jobs. With `own`, pauses of a single job end, too."""

    db: Connection
    own: bool

    def step(self, ids: Sequence[str], wait: timedelta) -> BatchResult:
        found = self.db.execute(SQL["resume"], {"ids": list(ids), "wait": wait, "own": self.own}).fetchall()
        resumed = [id_ for id_, held, _ in found if not held]
        return BatchResult(
            {"resumed": len(resumed)}, ids_of(found), [id_ for id_, _, due in found if due and id_ in resumed]
        )


def with_held(db: Connection, job_filter: JobFilter, done: BulkResult) -> BulkResult:
    """Add the count of jobs that something else still holds."""
    held = count_by_status(db, job_filter.model_copy(update={"status": "paused"})).get(JobStatus.PAUSED, 0)
    return replace(done, counts={**done.counts, "held": held})


def _check(
    db: Connection, job_types: JobTypeRegistry, job_filter: JobFilter, states: Sequence[JobStatus], what: str
) -> None:
    job_filter.require_any()
    require_known(db, job_types, job_filter)
    if job_filter.ids is not None:
        found = states_of(db, job_filter.ids)
        if not set(found.values()) & set(states):
            id_, state = next(iter(found.items()))
            raise TransitionRefused(f"job {id_} is {state} and can't be {what}")
