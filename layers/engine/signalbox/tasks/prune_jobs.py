"""Drops what ended long ago, once a night: jobs with all that is theirs, groups, notifications, and fine figures.

Jobs go with their partition, once it is old enough as a whole; what lies outside of the partitions, or has outlived
its own, goes row by row, found by its id and deleted by the time of its end. A job that failed stays while its dead
letter is open. Batches are small, so that nobody waits long for a lock. It also makes the partitions of the next days.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from signalbox.context import Context, Done, drain
from signalbox.jobs.ids import first_id
from signalbox.partitions import drop_partitions, length_of, make_partitions, oldest_start
from signalbox.queries import load_queries

SQL = load_queries(__file__)
BATCH = 250
# An id is made by its submitter's clock, all times are the database's.
CLOCKS_APART = timedelta(minutes=10)
# (period, kept for, the next longer one)
METRICS = (("minute", timedelta(days=2), "hour"), ("hour", timedelta(days=90), "day"))
_LEAST, _MOST = str(UUID(int=0)), str(UUID(int=(1 << 128) - 1))


def prune_jobs(context: Context) -> Done:
    """Items are the rows that are gone: of jobs, attempts, groups, notifications, figures, what jobs left behind."""
    items = 0
    for done in _steps(context):
        items += done.items
        if done.more:
            return Done(items, more=True)
    return Done(items)


def _steps(context: Context) -> Iterator[Done]:
    settings, now = context.settings, context.now
    kept = timedelta(days=settings.job_retention_days)
    attempts_kept = timedelta(days=settings.execution_retention_days)
    length = length_of(min(kept, attempts_kept), kept)
    for table in ("jobs", "job_executions"):
        make_partitions(context, table, length)
    yield _drop(context, "jobs", now - kept)
    yield _drop(context, "job_executions", now - attempts_kept)
    yield from _delete_rows(context, "jobs", _delete_jobs, now - kept, length)
    yield from _delete_rows(context, "job_executions", _delete_executions, now - attempts_kept, length)
    # Of jobs that went with their partition.
    gone = first_id(oldest_start(context, "jobs"))
    for leftovers in ("delete_dependencies", "delete_dependents", "delete_keys"):
        yield _delete(context, leftovers, until=gone)
    yield _delete(context, "delete_groups", before=now - kept)
    yield _delete(context, "delete_notifications", before=now - timedelta(days=settings.notification_retention_days))
    for period, figures_kept, longer in METRICS:
        yield _delete(context, "delete_metrics", before=now - figures_kept, period=period, longer=longer)


def _drop(context: Context, table: str, before: datetime) -> Done:
    items = drop_partitions(context, table, before - CLOCKS_APART, before=before)
    return Done(items, more=context.budget.spent)


def _delete_rows(
    context: Context,
    table: str,
    delete: Callable[[Context, datetime, str, str], Done],
    before: datetime,
    length: timedelta,
) -> Iterator[Done]:
    # A row in a partition waits for the whole of it, unless the partition has to stay.
    until = max(before - length, min(before + CLOCKS_APART, oldest_start(context, table)))
    yield delete(context, before, _LEAST, first_id(until))
    # Ids that are made at random lie beyond those of today, but for a few of them: these are walked as well.
    yield delete(context, before, first_id(context.now + timedelta(days=1)), _MOST)


def _delete_jobs(context: Context, before: datetime, after: str, until: str) -> Done:
    items = 0
    while not context.budget.spent:
        values = {"before": before, "after": after, "until": until, "batch": BATCH}
        row: Any = context.db.execute(SQL["delete_jobs"], values).fetchone()
        last, read, deleted = row
        items += deleted
        if read < BATCH:
            return Done(items)
        after = last
    return Done(items, more=True)


def _delete_executions(context: Context, before: datetime, after: str, until: str) -> Done:
    items, number = 0, 0
    while not context.budget.spent:
        values = {"before": before, "after": after, "number": number, "until": until, "batch": BATCH}
        row: Any = context.db.execute(SQL["delete_executions"], values).fetchone()
        last, number, read, deleted = row
        items += deleted
        if read < BATCH:
            return Done(items)
        after = last
    return Done(items, more=True)


def _delete(context: Context, query: str, **values: Any) -> Done:
    return drain(context.budget, lambda: context.db.execute(SQL[query], values | {"batch": BATCH}).rowcount, size=BATCH)
