"""Factories of the rows that a test finds in the job plane; each makes only what the engine could have left."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from signalbox.postgres.uuid7 import first_id, new_ids

MINUTE = timedelta(minutes=1)


def id_of(instant: datetime) -> str:
    """An id as it was made then."""
    return first_id(instant)[:14] + new_ids(1)[0][14:]


def pending_job(db: psycopg.Connection, due: datetime, **columns: Any) -> str:
    """Waits for its time."""
    return insert_job(db, {"status": "pending", "scheduled_for": due, "send_at": due} | columns)


def retried_job(db: psycopg.Connection, due: datetime, **columns: Any) -> str:
    """Waits for its next attempt; its message went out with a delay, and is looked for two minutes after it was due."""
    return pending_job(db, due, send_at=due + 2 * MINUTE, attempts=1, executions=1, **columns)


def blocked_job(db: psycopg.Connection, *, on: str, **columns: Any) -> str:
    """Waits for another."""
    job_id = insert_job(db, {"status": "pending", "unmet_dependencies": 1} | columns)
    db.execute("INSERT INTO signalbox.job_dependencies (job_id, depends_on_job_id) VALUES (%s, %s)", (job_id, on))
    return job_id


def queued_job(db: psycopg.Connection, look: datetime, **columns: Any) -> str:
    """Was sent, and is looked for at that time."""
    return insert_job(db, {"status": "queued", "send_at": look, "queued_at": look - 2 * MINUTE} | columns)


def running_job(db: psycopg.Connection, *, lease: timedelta = 5 * MINUTE, attempt: int = 1, **columns: Any) -> str:
    """As its worker holds it, the lease ending so long from now."""
    now = _clock(db)
    values = {
        "status": "running",
        "attempts": attempt,
        "executions": attempt,
        "lease_token": uuid4(),
        "lease_expires_at": now + lease,
        "worker_id": "worker-1",
        "health_status": "HEALTHY",
        "started_at": now - 10 * MINUTE,
        "queued_at": now - 11 * MINUTE,
    } | columns
    return insert_job(db, values)


def ended_job(db: psycopg.Connection, ended: datetime, status: str = "completed", **columns: Any) -> str:
    """With one attempt; made and begun when it ended."""
    error = (
        {"error_details": Jsonb({"type": "Trouble", "message": "as the test wants it"})} if status == "failed" else {}
    )
    times = dict.fromkeys(("created_at", "started_at", "completed_at", "updated_at"), ended)
    job_id = insert_job(db, {"id": id_of(ended), "status": status, "executions": 1} | times | error | columns)
    execution(db, ended, job_id=job_id, status=status)
    return job_id


def dead_letter(db: psycopg.Connection, job_id: str | None, status: str = "pending", **columns: Any) -> str:
    values = {
        "original_job_id": job_id,
        "job_type": "do_nothing",
        "payload": Jsonb({}),
        "failure_reason": "permanent",
        "total_attempts": 1,
        "fingerprint": "f",
        "status": status,
        "resolved_at": _clock(db) if status in ("resolved", "ignored") else None,
    } | columns
    return _insert(db, "dead_letter_jobs", values)


def execution(
    db: psycopg.Connection, ended: datetime, *, ms: int = 0, waited_ms: int | None = None, **columns: Any
) -> str:
    """An attempt that took so long."""
    started = ended - timedelta(milliseconds=ms)
    values = {
        "job_id": str(uuid4()),
        "attempt_number": 1,
        "job_type": "do_nothing",
        "lane": "normal",
        "status": "completed",
        "lease_token": uuid4(),
        "worker_id": "worker-1",
        "queued_at": None if waited_ms is None else started - timedelta(milliseconds=waited_ms),
        "started_at": started,
        "completed_at": ended,
    } | columns
    _insert(db, "job_executions", values, "job_id")
    return str(values["job_id"])


def insert_job(db: psycopg.Connection, columns: dict[str, Any]) -> str:
    """As it is given; what is not said is what a submit would have put there."""
    values = {"job_type": "do_nothing", "lane": "normal", "max_attempts": 3, "timeout_ms": 60_000} | columns
    return _insert(db, "jobs", {"id": new_ids(1)[0]} | values)


def job(db: psycopg.Connection, job_id: str) -> dict[str, Any]:
    """The row, whole."""
    with db.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute("SELECT * FROM signalbox.jobs WHERE id = %s", (job_id,)).fetchone()
    assert row is not None, f"there is no job {job_id}"
    return row


def statuses(db: psycopg.Connection, *job_ids: str) -> list[str]:
    return [str(job(db, job_id)["status"]) for job_id in job_ids]


def _insert(db: psycopg.Connection, table: str, values: dict[str, Any], key: str = "id") -> str:
    statement = sql.SQL("INSERT INTO {} ({}) VALUES ({}) RETURNING {}::text").format(
        sql.Identifier("signalbox", table),
        sql.SQL(", ").join(map(sql.Identifier, values)),
        sql.SQL(", ").join(sql.Placeholder() * len(values)),
        sql.Identifier(key),
    )
    row = db.execute(statement, list(values.values())).fetchone()
    assert row is not None
    return str(row[0])


def _clock(db: psycopg.Connection) -> datetime:
    row = db.execute("SELECT clock_timestamp()").fetchone()
    assert row is not None
    instant: datetime = row[0]
    return instant.astimezone(UTC)
