"""Delete runs older than their task keeps them, once a night.

A partition goes at once where hardly a run in it must stay; the rest goes in batches that never hold a lock for long.
The task also makes the partitions of the next days. Missed slots age like runs. Finished backfills and their slots go
after a season. A run at work is never touched. Runs of tasks that this stack does not know stay: a pack that was
removed for a while must find its history again.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from psycopg.types.json import Jsonb

from signalbox.batches.drain import drain
from signalbox.batches.partitions import drop_partitions, length_of, make_partitions, oldest_start
from signalbox.ledger.context import Context, Done
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
BATCH = 1000
BACKFILL_RETENTION = timedelta(days=90)
# Daily partitions would be too many for the rows of the ledger.
SHORTEST_PARTITION = timedelta(days=7)


def prune_history(context: Context) -> Done:
    """Delete the rows. Items are the rows that are gone."""
    retentions = {task.name: task.retention for task in context.all_tasks}
    length = length_of(SHORTEST_PARTITION * 4, max(retentions.values()))
    make_partitions(context, "job_history", length)
    retained = Jsonb({task: (context.now - kept).isoformat() for task, kept in retentions.items()})
    items = drop_partitions(context, "job_history", context.now - min(retentions.values()), retained=retained)
    oldest = oldest_start(context, "job_history")
    for task, kept in retentions.items():
        done = _delete_runs(context, task, context.now - kept, oldest, length)
        items += done.items
        if done.more:
            return Done(items, more=True)
    slots = _delete(context, "delete_backfill_slots")
    backfills = _delete(context, "delete_backfills") if not slots.more else Done()
    actions = _delete(context, "delete_bulk_actions")
    parts = (slots, backfills, actions)
    return Done(items + sum(part.items for part in parts), more=any(part.more for part in parts))


def _delete_runs(context: Context, task: str, before: datetime, oldest: datetime, length: timedelta) -> Done:
    # A row in a partition waits until all of it may go, unless the partition has to stay.
    values = {"job_type": task, "before": before, "overdue": before - length, "oldest": oldest, "batch": BATCH}
    return drain(context.budget, lambda: context.db.execute(SQL["delete_runs"], values).rowcount, size=BATCH)


def _delete(context: Context, query: str) -> Done:
    values = {"before": context.now - BACKFILL_RETENTION, "batch": BATCH}
    return drain(context.budget, lambda: context.db.execute(SQL[query], values).rowcount, size=BATCH)
