"""Try jobs now: those that wait for a retry, a cap, a snooze or their time become due."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from signalbox.errors import TransitionRefused
from signalbox.jobs.status import JobStatus
from signalbox.operate.audit import Actor
from signalbox.operate.bulk import BatchResult, BulkContext, BulkResult, BulkStep, ids_of, run_bulk_action
from signalbox.operate.filters import JobFilter
from signalbox.operate.listing import require_known
from signalbox.packs.registries import JobTypeRegistry
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
_INSTEAD = {
    JobStatus.QUEUED: "it has been sent to a worker already",
    JobStatus.RUNNING: "wait for its result",
    JobStatus.PAUSED: "`signalbox resume` resumes it",
    JobStatus.COMPLETED: "it has succeeded; submit another job to do it again",
    JobStatus.CANCELLED: "a cancelled job can't be retried; submit another job instead",
}


def retry_now(db: Connection, job_types: JobTypeRegistry, job_filter: JobFilter, context: BulkContext) -> BulkResult:
    """Make the jobs due now, and count them as `hastened`, a name that callers rely on.

    A single job that can't be tried now is refused with what to do instead.
    """
    job_filter.require_any()
    require_known(db, job_types, job_filter)
    if job_filter.ids is not None and len(job_filter.ids) == 1:
        _refuse_unfit(db, job_filter.ids[0])
    return run_bulk_action(db, job_filter, context, "retry", retry_steps(db, context.by))


def retry_steps(db: Connection, _: Actor) -> list[BulkStep]:
    def step(ids: Sequence[str], wait: timedelta) -> BatchResult:
        found = ids_of(db.execute(SQL["retry_now"], {"ids": list(ids), "wait": wait}).fetchall())
        return BatchResult({"hastened": len(found)}, found, found)

    return [BulkStep((JobStatus.PENDING,), step)]


def _refuse_unfit(db: Connection, id_: str) -> None:
    status, unmet, waits, dead_letter = db.execute(SQL["find"], {"id": id_}).fetchone() or ("", 0, False, None)
    if status == JobStatus.PENDING:
        why = (
            f"it waits for {unmet:,} other jobs to end"
            if unmet
            else None
            if waits
            else "it is due, and dispatch_jobs sends it within a minute"
        )
    elif status == JobStatus.FAILED:
        why = f"`signalbox redrive {dead_letter or id_}` retries it"
    else:
        why = _INSTEAD[JobStatus(status)]
    if why:
        raise TransitionRefused(f"job {id_} is {status}, so there is nothing to retry now: {why}")
