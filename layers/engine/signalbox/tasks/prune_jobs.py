"""Delete what ended long ago, once a night: jobs and all their rows, groups, notifications, audit and fine figures.

Jobs are found by their ids and deleted by the time of their end. A failed job stays while its dead letter is open.
Attempts go with their partition, once all of it is old enough, or with their job if they are outside the partitions.
Batches are small, so that nothing waits long for a lock. The task also makes the partitions of the next days.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from signalbox.batches.drain import drain
from signalbox.batches.partitions import DAY, drop_partitions, length_of, make_partitions, oldest_start
from signalbox.batches.row_archive import store
from signalbox.ledger.context import Context, Done
from signalbox.postgres.queries import load_queries
from signalbox.postgres.uuid7 import first_id

SQL = load_queries(__file__)
BATCH = 250
# With an archive, rows are archived and deleted one by one, and partitions go this much later, when they are empty.
ARCHIVE_GRACE = timedelta(days=7)
# An id is made by its submitter's clock, all times are the database's.
CLOCKS_APART = timedelta(minutes=10)
# (period, kept for, the next longer one)
METRICS = (("minute", timedelta(days=2), "hour"), ("hour", timedelta(days=90), "day"))
_LEAST, _MOST = str(UUID(int=0)), str(UUID(int=(1 << 128) - 1))


def prune_jobs(context: Context) -> Done:
    """Delete the rows. Items are the deleted jobs, attempts, groups, notifications, audit rows and figures."""
    items = 0
    for done in _steps(context):
        items += done.items
        if done.more:
            return Done(items, more=True)
    return Done(items)


def _steps(context: Context) -> Iterator[Done]:
    settings, now = context.settings, context.now
    kept = timedelta(days=settings.job_retention_days)
    attempts_kept = min(kept, timedelta(days=settings.execution_retention_days))
    length = length_of(attempts_kept, kept)
    make_partitions(context, "job_executions", length)
    yield from _delete_jobs(context, now - kept)
    if not settings.archive_bucket:
        yield _drop_executions(context, now - attempts_kept)
    yield from _delete_executions(context, now - attempts_kept, length)
    if settings.archive_bucket:
        # After the rows: what S3 did not take is not dropped.
        yield _drop_executions(context, now - attempts_kept - ARCHIVE_GRACE)
    yield _delete(context, "delete_groups", before=now - kept)
    yield _delete(context, "delete_signals", before=now - kept)
    yield _delete(context, "delete_notifications", before=now - timedelta(days=settings.notification_retention_days))
    yield _delete_audit(context, now - timedelta(days=settings.audit_retention_days))
    for period, figures_kept, longer in METRICS:
        yield _delete(context, "delete_metrics", before=now - figures_kept, period=period, longer=longer)


def _delete_jobs(context: Context, before: datetime) -> Iterator[Done]:
    # Jobs are archived together with their attempts.
    partitioned = _MOST if context.settings.archive_bucket else first_id(oldest_start(context, "job_executions"))
    yield _walk_jobs(context, before, _LEAST, first_id(before + CLOCKS_APART), partitioned)
    # Random ids are mostly larger than those of today: these are walked as well.
    yield _walk_jobs(context, before, first_id(context.now + DAY), _MOST, _MOST)


def _walk_jobs(context: Context, before: datetime, after: str, until: str, partitioned: str) -> Done:
    items = 0
    while not context.budget.spent:
        values = {"before": before, "after": after, "until": until, "partitioned": partitioned}
        last, read, deleted = _delete_page(context, "jobs", "delete_jobs", **values)
        items += deleted
        if read < BATCH:
            return Done(items)
        after = last
    return Done(items, more=True)


def _drop_executions(context: Context, before: datetime) -> Done:
    items = drop_partitions(context, "job_executions", before - CLOCKS_APART, before=before)
    return Done(items, more=context.budget.spent)


def _delete_executions(context: Context, before: datetime, length: timedelta) -> Iterator[Done]:
    # A row in a partition waits until all of it may go, unless the partition has to stay.
    until = max(before - length, min(before + CLOCKS_APART, oldest_start(context, "job_executions")))
    if context.settings.archive_bucket:
        until = before + CLOCKS_APART
    yield _walk_executions(context, before, _LEAST, first_id(until))
    yield _walk_executions(context, before, first_id(context.now + DAY), _MOST)


def _walk_executions(context: Context, before: datetime, after: str, until: str) -> Done:
    items, number = 0, 0
    while not context.budget.spent:
        values = {"before": before, "after": after, "number": number, "until": until}
        last, number, read, deleted = _delete_page(context, "job_executions", "delete_executions", **values)
        items += deleted
        if read < BATCH:
            return Done(items)
        after = last
    return Done(items, more=True)


def _delete_audit(context: Context, before: datetime) -> Done:
    def step() -> int:
        [deleted] = _delete_page(context, "audit_log", "delete_audit", before=before)
        return int(deleted)

    return drain(context.budget, step, size=BATCH)


def _delete_page(context: Context, table: str, query: str, **values: Any) -> tuple[Any, ...]:
    """Delete a page of rows, once the archive has them; return the query's columns, without those for the archive."""
    archive = context.settings.archive_bucket is not None
    with context.db.transaction() if archive else nullcontext():
        row: Any = context.db.execute(SQL[query], values | {"archive": archive, "batch": BATCH}).fetchone()
        *found, first, lines = row
        store(context, table, first, lines)
    return tuple(found)


def _delete(context: Context, query: str, **values: Any) -> Done:
    return drain(context.budget, lambda: context.db.execute(SQL[query], values | {"batch": BATCH}).rowcount, size=BATCH)
