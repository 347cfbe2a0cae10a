"""The partitions of jobs, job_executions and job_history: made ahead of time, and dropped once all in them may go.

The prune tasks ask for both each night. The schema's own functions decide, under their locks, so that a role that owns
no table may call them. A lock that is not to be had in time, and a partition that must stay, wait for the next night.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from psycopg import errors

from signalbox.context import Context
from signalbox.queries import load_queries

SQL = load_queries(__file__)
DAY = timedelta(days=1)
TRIES = 3
_NEVER = datetime.max.replace(tzinfo=UTC)


class Partition(NamedTuple):
    """One that holds a stretch of time."""

    name: str
    starts_at: datetime
    ends_at: datetime


def length_of(shortest: timedelta, longest: timedelta) -> timedelta:
    """A quarter of the shortest retention, in whole days, and no more than some thirty partitions in all."""
    return max(shortest // 4, longest // 26, DAY) // DAY * DAY


def make_partitions(context: Context, table: str, length: timedelta) -> None:
    """Up to twice the length ahead, so that many nights may fail before the default partition gets anything."""
    made = _patiently(context, table, partial(_call, context, "make", table=table, days=length // DAY))
    if made:
        context.log.info("partitions.made", extra={"table": table, "number": made})


def drop_partitions(context: Context, table: str, until: datetime, **before: Any) -> int:
    """Those that ended before the instant, if hardly anything in them must stay; answers how many rows went."""
    rows = 0
    for part in list_partitions(context, table):
        if part.ends_at > until or context.budget.spent:
            break
        gone = _patiently(context, table, partial(_call, context, f"drop_{table}", which=part.name, **before))
        if gone is None:
            context.log.info("partition.kept", extra={"partition": part.name})
        else:
            context.log.info("partition.dropped", extra={"partition": part.name, "rows": gone})
            rows += gone
    return rows


def list_partitions(context: Context, table: str) -> list[Partition]:
    """The oldest first."""
    return [Partition(*row) for row in context.db.execute(SQL["list"], {"table": table}).fetchall()]


def oldest_start(context: Context, table: str) -> datetime:
    """What is older than any partition lies in the default one, and there goes row by row."""
    parts = list_partitions(context, table)
    return parts[0].starts_at if parts else _NEVER


def _patiently(context: Context, table: str, act: Callable[[], int | None]) -> int | None:
    for _ in range(TRIES):
        try:
            return act()
        except (errors.LockNotAvailable, errors.DeadlockDetected):
            context.log.info("partitions.postponed", extra={"table": table})
        except errors.ObjectNotInPrerequisiteState as error:
            context.log.warning("partitions.refused", extra={"table": table, "reason": str(error)})
            return None
    return None


def _call(context: Context, query: str, **values: Any) -> int | None:
    row: Any = context.db.execute(SQL[query], values).fetchone()
    answer: int | None = row[0]
    return answer
