"""Make past weeks' partitions as their nights would have, and read a table's present ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg

TODAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
WEEK = timedelta(days=7)


def past_partition(db: psycopg.Connection, table: str, weeks: int, now: datetime = TODAY) -> datetime:
    """Add a partition for a week that began so many weeks ago; return an instant in its middle."""
    starts = now.replace(hour=0, minute=0, second=0, microsecond=0) - weeks * WEEK
    db.execute("SET ROLE signalbox_owner")  # whose make_partitions would have made it
    db.execute("SELECT signalbox.add_partition(%s, %s, %s)", (table, starts, starts + WEEK))
    db.execute("RESET ROLE")
    return starts + WEEK / 2


def partitions_of(db: psycopg.Connection, table: str) -> list[tuple[datetime, datetime]]:
    statement = "SELECT starts_at, ends_at FROM signalbox.partitions WHERE of_table = %s ORDER BY starts_at"
    return db.execute(statement, (table,)).fetchall()


def place_of(db: psycopg.Connection, job_id: str) -> str:
    """Return the partition of the job's first attempt: `default`, `others` or a date."""
    statement = "SELECT tableoid::regclass::text FROM signalbox.job_executions WHERE job_id = %s"
    row = db.execute(statement, (job_id,)).fetchone()
    assert row is not None, f"job {job_id} has no attempt"
    return str(row[0]).rpartition("_")[2]
