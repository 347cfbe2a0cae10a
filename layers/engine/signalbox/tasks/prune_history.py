"""Deletes runs older than their task keeps them, once a night, in batches that never hold a lock for long.

Missed slots age like runs. Finished backfills and their slots go after a season. A run at work is never touched, and
runs of tasks that this stack does not know stay: a pack taken out for a while must find its history again.
"""

from __future__ import annotations

from datetime import timedelta

from signalbox.context import Context, Done, drain
from signalbox.queries import load_queries

SQL = load_queries(__file__)
BATCH = 1000
BACKFILL_RETENTION = timedelta(days=90)


def prune_history(context: Context) -> Done:
    """Items are the rows deleted."""
    items = 0
    for task in context.known:
        done = _delete(context, "delete_runs", task.retention, task.name)
        items += done.items
        if done.more:
            return Done(items, more=True)
    slots = _delete(context, "delete_backfill_slots", BACKFILL_RETENTION)
    backfills = _delete(context, "delete_backfills", BACKFILL_RETENTION) if not slots.more else Done()
    return Done(items + backfills.items, more=slots.more or backfills.more)


def _delete(context: Context, query: str, retention: timedelta, job_type: str = "") -> Done:
    values = {"job_type": job_type, "before": context.now - retention, "batch": BATCH}
    return drain(context.budget, lambda: context.db.execute(SQL[query], values).rowcount, size=BATCH)
