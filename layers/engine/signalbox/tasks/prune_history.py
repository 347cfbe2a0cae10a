"""Deletes runs older than their task keeps them, once a night, in batches that never hold a lock for long.

Missed slots age like runs. Finished backfills and their slots go after a season. A run at work is never touched.
"""

from __future__ import annotations

from datetime import timedelta

from signalbox.context import Context, Done, drain
from signalbox.queries import load_queries
from signalbox.registry import Task

SQL = load_queries(__file__)
BATCH = 1000
# For runs of tasks that this stack no longer knows, and for backfills.
DEFAULT_RETENTION = timedelta(days=90)


def prune_history(context: Context) -> Done:
    """Items are the rows deleted."""
    items = 0
    for (job_type,) in context.db.execute(SQL["list_job_types"]).fetchall():
        done = _prune_task(context, job_type)
        items += done.items
        if done.more:
            return Done(items, more=True)
    before = {"before": context.now - DEFAULT_RETENTION}
    return Done(items + context.db.execute(SQL["delete_backfills"], before).rowcount)


def _prune_task(context: Context, job_type: str) -> Done:
    task: Task | None = context.registry.tasks.get(job_type)
    before = context.now - (task.retention if task else DEFAULT_RETENTION)
    values = {"job_type": job_type, "before": before, "batch": BATCH}
    return drain(context.budget, lambda: context.db.execute(SQL["delete_runs"], values).rowcount, size=BATCH)
