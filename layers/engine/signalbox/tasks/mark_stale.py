"""Mark running jobs without a heartbeat for five minutes as STALE, each minute; as FAILED once their lease is over.

A mark changes nothing for the job: the next heartbeat removes it, and rescue_jobs only looks at the lease. It shows
operators, and the health of the stack, that something hangs.
"""

from __future__ import annotations

from signalbox.batches.drain import drain
from signalbox.ledger.context import Context, Done
from signalbox.postgres.queries import load_queries
from signalbox.stats.health import STALE_AFTER

SQL = load_queries(__file__)
BATCH = 1000


def mark_stale(context: Context) -> Done:
    """Mark the jobs. Items are the jobs that were marked."""
    return drain(context.budget, lambda: _mark(context), size=BATCH)


def _mark(context: Context) -> int:
    rows = context.db.execute(SQL["mark"], {"patience": STALE_AFTER, "batch": BATCH}).fetchall()
    for job_id, job_type, worker_id, health in rows:
        ids = {"job_id": job_id, "job_type": job_type, "worker_id": worker_id}
        context.log.warning("job.marked_stale", extra=ids | {"health": health})
    return len(rows)
