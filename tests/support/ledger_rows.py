"""Factories of the rows that a test finds in the ledger; each makes only what the engine itself could have left."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb


def succeeded_run(db: psycopg.Connection, task: str, slot: datetime, *, more: bool = False, **columns: Any) -> int:
    return _insert(db, task, slot, {"status": "succeeded", "more": more, "finished": True} | columns)


def failed_run(db: psycopg.Connection, task: str, slot: datetime, kind: str = "Trouble", **columns: Any) -> int:
    error = Jsonb({"type": kind, "message": "as the test wants it"})
    return _insert(db, task, slot, {"status": "failed", "error": error, "finished": True} | columns)


def lost_run(db: psycopg.Connection, task: str, slot: datetime, **columns: Any) -> int:
    return failed_run(db, task, slot, "WorkerLost", **columns)


def skipped_run(db: psycopg.Connection, task: str, slot: datetime, **columns: Any) -> int:
    return _insert(db, task, slot, {"status": "skipped", "reason": "as the test wants it", "finished": True} | columns)


def missed_slot(db: psycopg.Connection, task: str, slot: datetime, **columns: Any) -> int:
    return _insert(
        db, task, slot, {"status": "missed", "reason": "no run came", "finished": True, "ran": False} | columns
    )


def abandoned_run(
    db: psycopg.Connection, task: str, slot: datetime, *, lease: timedelta, whole_task: bool = False, **columns: Any
) -> int:
    """What a worker leaves that was killed in the middle of a run, its lease ending so long from now."""
    for lock in [f"{task}:{slot.isoformat()}"] + ([task] if whole_task else []):
        db.execute(
            "INSERT INTO signalbox.job_locks VALUES (%s, %s, now() - interval '1 hour', now() + %s)",
            (lock, f"gone/{slot}", lease),
        )
    return _insert(db, task, slot, {"status": "running", "worker_id": f"gone/{slot}"} | columns)


def runs_of(db: psycopg.Connection, task: str) -> list[dict[str, Any]]:
    with db.cursor(row_factory=dict_row) as cursor:
        return cursor.execute("SELECT * FROM signalbox.job_history WHERE job_type = %s ORDER BY id", (task,)).fetchall()


def count(db: psycopg.Connection, table: str) -> int:
    row = db.execute(psycopg.sql.SQL("SELECT count(*) FROM {}").format(psycopg.sql.SQL(table))).fetchone()
    return int(row[0]) if row else 0


def _insert(db: psycopg.Connection, task: str, slot: datetime, columns: dict[str, Any]) -> int:
    ago = columns.pop("ago", timedelta(hours=1))
    row = {
        "job_type": task,
        "slot": slot,
        "reference_time": slot,
        "trigger": "schedule",
        "worker_id": "tests",
    } | columns
    finished = row.pop("finished", False)
    now = db.execute("SELECT now()").fetchone()
    assert now is not None
    row["started_at"] = now[0] - ago
    if finished:
        row["finished_at"] = row["started_at"]
    names = psycopg.sql.SQL(", ").join(map(psycopg.sql.Identifier, row))
    values = psycopg.sql.SQL(", ").join(map(psycopg.sql.Placeholder, row))
    statement = psycopg.sql.SQL("INSERT INTO signalbox.job_history ({}) VALUES ({}) RETURNING id")
    made = db.execute(statement.format(names, values), row).fetchone()
    assert made is not None
    return int(made[0])
