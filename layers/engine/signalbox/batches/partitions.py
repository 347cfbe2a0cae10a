"""Make the partitions of job_executions and job_history ahead of time, and drop them when all their rows may go.

The prune tasks call both each night. The schema's own functions decide, under their locks, so that a role that owns no
table may call them. Where a lock is not available in time, or a partition must stay, the next night tries again.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from psycopg import errors

from signalbox.ledger.context import Context
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
DAY = timedelta(days=1)
LOCKED = (errors.LockNotAvailable, errors.DeadlockDetected)
_NEVER = datetime.max.replace(tzinfo=UTC)


class Partition(NamedTuple):
    """Describe a partition that holds a period of time."""

    name: str
    starts_at: datetime
    ends_at: datetime


def length_of(shortest: timedelta, longest: timedelta) -> timedelta:
    """Return a quarter of the shortest retention, in whole days, and at least a twelfth of the longest."""
    return max(shortest // 4, longest // 12, DAY) // DAY * DAY


def make_partitions(context: Context, table: str, length: timedelta) -> None:
    """Make partitions up to twice the length ahead: many nights may fail before the default one gets any rows."""
    try:
        made = _call(context, "make", table=table, days=length // DAY)
    except errors.ObjectNotInPrerequisiteState as error:
        details = {"reason": error.diag.message_primary, "hint": error.diag.message_hint}
        context.log.warning("partitions.refused", extra={"table": table, **details})
    except LOCKED:
        context.log.info("partitions.postponed", extra={"table": table})
    else:
        if made:
            context.log.info("partitions.made", extra={"table": table, "number": made})


def drop_partitions(context: Context, table: str, until: datetime, **before: Any) -> int:
    """Drop the partitions that ended before the instant, if hardly any row must stay. Return how many rows went."""
    rows = 0
    for part in list_partitions(context, table):
        if part.ends_at > until or context.budget.spent:
            break
        try:
            gone = _call(context, f"drop_{table}", which=part.name, **before)
        except LOCKED:
            # Neither retry nor try the others: every newcomer waits behind the lock.
            context.log.info("partitions.postponed", extra={"table": table, "partition": part.name})
            break
        event = "partition.kept" if gone is None else "partition.dropped"
        context.log.info(event, extra={"partition": part.name, "rows": gone})
        rows += gone or 0
    return rows


def list_partitions(context: Context, table: str) -> list[Partition]:
    """Return the partitions, the oldest first."""
    return [Partition(*row) for row in context.db.execute(SQL["list"], {"table": table}).fetchall()]


def oldest_start(context: Context, table: str) -> datetime:
    """Return when the oldest partition begins. Older rows are in the default partition and are deleted row by row."""
    parts = list_partitions(context, table)
    return parts[0].starts_at if parts else _NEVER


def _call(context: Context, query: str, **values: Any) -> int | None:
    row: Any = context.db.execute(SQL[query], values).fetchone()
    answer: int | None = row[0]
    return answer
