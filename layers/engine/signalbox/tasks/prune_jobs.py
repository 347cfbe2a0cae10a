"""Deletes what ended long ago, once a night: jobs with their attempts and dependencies, groups, and fine figures.

Jobs are found by their ids, which sort by time, and deleted by the time of their end. A job that failed stays while
its dead letter is open. Batches are small, so that nobody waits long for a lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from signalbox.context import Context, Done, drain
from signalbox.jobs.ids import first_id
from signalbox.queries import load_queries

SQL = load_queries(__file__)
BATCH = 250
# An id is made by its submitter's clock, all times are the database's.
CLOCKS_APART = timedelta(minutes=10)
# (period, kept for, the next longer one)
METRICS = (("minute", timedelta(days=2), "hour"), ("hour", timedelta(days=90), "day"))
_LEAST, _MOST = str(UUID(int=0)), str(UUID(int=(1 << 128) - 1))


def prune_jobs(context: Context) -> Done:
    """Items are the rows deleted: of jobs, attempts, groups and figures."""
    items = 0
    for done in _steps(context):
        items += done.items
        if done.more:
            return Done(items, more=True)
    return Done(items)


def _steps(context: Context) -> Iterator[Done]:
    settings, now = context.settings, context.now
    jobs = now - timedelta(days=settings.job_retention_days)
    executions = now - timedelta(days=settings.execution_retention_days)
    # Ids that are made at random lie beyond those of today, but for a few of them: these are walked as well.
    beyond = first_id(now + timedelta(days=1))
    yield _delete_jobs(context, jobs, _LEAST, first_id(jobs + CLOCKS_APART))
    yield _delete_jobs(context, jobs, beyond, _MOST)
    yield _delete_executions(context, executions, _LEAST, first_id(executions + CLOCKS_APART))
    yield _delete_executions(context, executions, beyond, _MOST)
    yield _delete(context, "delete_groups", before=jobs)
    for period, kept, longer in METRICS:
        yield _delete(context, "delete_metrics", before=now - kept, period=period, longer=longer)


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
