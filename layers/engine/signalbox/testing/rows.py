"""Make the rows that a test begins from, each as the engine itself could have left it, and read rows."""

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
TROUBLE = {"type": "Trouble", "message": "as the test wants it"}

# ---- reads


def select(db: psycopg.Connection[Any], statement: str, *values: Any) -> list[dict[str, Any]]:
    """Return the rows, each by its columns' names."""
    with db.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(statement.encode(), values or None).fetchall()


def count(db: psycopg.Connection[Any], table: str) -> int:
    """Count the rows of a table; a WHERE may follow its name."""
    return int(select(db, f"SELECT count(*) FROM {table}")[0]["count"])  # noqa: S608 - written in tests


def job(db: psycopg.Connection[Any], job_id: str) -> dict[str, Any]:
    """Return the job's row, whole."""
    found = select(db, "SELECT * FROM signalbox.jobs WHERE id = %s", job_id)
    assert found, f"there is no job {job_id}"
    return found[0]


def statuses(db: psycopg.Connection[Any], *job_ids: str) -> list[str]:
    """Return the status of each of the jobs."""
    return [str(job(db, job_id)["status"]) for job_id in job_ids]


def attempts(db: psycopg.Connection[Any], job_id: str) -> list[dict[str, Any]]:
    """Return the job's executions, the first one first."""
    return select(db, "SELECT * FROM signalbox.job_executions WHERE job_id = %s ORDER BY attempt_number", job_id)


def dead_letter_of(db: psycopg.Connection[Any], job_id: str) -> dict[str, Any]:
    """Return the job's dead letter."""
    [row] = select(db, "SELECT * FROM signalbox.dead_letter_jobs WHERE original_job_id = %s", job_id)
    return row


def runs_of(db: psycopg.Connection[Any], task: str) -> list[dict[str, Any]]:
    """Return what the ledger has of a task, the oldest run first."""
    return select(db, "SELECT * FROM signalbox.job_history WHERE job_type = %s ORDER BY id", task)


# ---- jobs


def id_of(instant: datetime) -> str:
    """Return an id as it was made then."""
    return first_id(instant)[:14] + new_ids(1)[0][14:]


def pending_job(db: psycopg.Connection[Any], due: datetime, **columns: Any) -> str:
    """Insert a job that waits for its time."""
    return insert_job(db, {"status": "pending", "scheduled_for": due, "send_at": due} | columns)


def retried_job(db: psycopg.Connection[Any], due: datetime, **columns: Any) -> str:
    """Insert a job that waits for its next attempt; its message is looked for two minutes after it was due."""
    return pending_job(db, due, send_at=due + 2 * MINUTE, attempts=1, executions=1, **columns)


def blocked_job(db: psycopg.Connection[Any], *, on: str, **columns: Any) -> str:
    """Insert a job that waits for another."""
    job_id = insert_job(db, {"status": "pending", "unmet_dependencies": 1} | columns)
    db.execute("INSERT INTO signalbox.job_dependencies (job_id, depends_on_job_id) VALUES (%s, %s)", (job_id, on))
    return job_id


def queued_job(db: psycopg.Connection[Any], look: datetime, **columns: Any) -> str:
    """Insert a job that was sent, and is looked for at that time."""
    return insert_job(db, {"status": "queued", "send_at": look, "queued_at": look - 2 * MINUTE} | columns)


def running_job(db: psycopg.Connection[Any], *, lease: timedelta = 5 * MINUTE, attempt: int = 1, **columns: Any) -> str:
    """Insert a job as its worker holds it; the lease ends this long from now."""
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


def ended_job(db: psycopg.Connection[Any], ended: datetime, status: str = "completed", **columns: Any) -> str:
    """Insert a job with one attempt, made and begun when it ended."""
    error = {"error_details": Jsonb(TROUBLE)} if status == "failed" else {}
    times = dict.fromkeys(("created_at", "started_at", "completed_at", "updated_at"), ended)
    job_id = insert_job(db, {"id": id_of(ended), "status": status, "executions": 1} | times | error | columns)
    execution(db, ended, job_id=job_id, status=status)
    return job_id


def dead_letter(db: psycopg.Connection[Any], job_id: str | None, status: str = "pending", **columns: Any) -> str:
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
    db: psycopg.Connection[Any], ended: datetime, *, ms: int = 0, waited_ms: int | None = None, **columns: Any
) -> str:
    """Insert an attempt that took this long."""
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


def insert_job(db: psycopg.Connection[Any], columns: dict[str, Any]) -> str:
    """Insert a job; columns that are not given are as after a submit."""
    values = {"job_type": "do_nothing", "lane": "normal", "max_attempts": 3, "timeout_ms": 60_000} | columns
    return _insert(db, "jobs", {"id": new_ids(1)[0]} | values)


# ---- runs


def succeeded_run(db: psycopg.Connection[Any], task: str, slot: datetime, *, more: bool = False, **columns: Any) -> int:
    return _run(db, task, slot, {"status": "succeeded", "more": more, "finished": True} | columns)


def failed_run(db: psycopg.Connection[Any], task: str, slot: datetime, kind: str = "Trouble", **columns: Any) -> int:
    error = Jsonb(TROUBLE | {"type": kind})
    return _run(db, task, slot, {"status": "failed", "error": error, "finished": True} | columns)


def lost_run(db: psycopg.Connection[Any], task: str, slot: datetime, **columns: Any) -> int:
    return failed_run(db, task, slot, "WorkerLost", **columns)


def skipped_run(db: psycopg.Connection[Any], task: str, slot: datetime, **columns: Any) -> int:
    return _run(db, task, slot, {"status": "skipped", "reason": TROUBLE["message"], "finished": True} | columns)


def missed_slot(db: psycopg.Connection[Any], task: str, slot: datetime, **columns: Any) -> int:
    return _run(db, task, slot, {"status": "missed", "reason": "no run came", "finished": True, "ran": False} | columns)


def abandoned_run(
    db: psycopg.Connection[Any],
    task: str,
    slot: datetime,
    *,
    lease: timedelta,
    whole_task: bool = False,
    **columns: Any,
) -> int:
    """Insert a run whose worker was killed in the middle; its lease ends this long from now."""
    for lock in [f"{task}:{slot.isoformat()}"] + ([task] if whole_task else []):
        db.execute(
            "INSERT INTO signalbox.job_locks VALUES (%s, %s, now() - interval '1 hour', now() + %s)",
            (lock, f"gone/{slot}", lease),
        )
    return _run(db, task, slot, {"status": "running", "worker_id": f"gone/{slot}"} | columns)


def _run(db: psycopg.Connection[Any], task: str, slot: datetime, columns: dict[str, Any]) -> int:
    ago, finished = columns.pop("ago", timedelta(hours=1)), columns.pop("finished", False)
    values = {"job_type": task, "slot": slot, "reference_time": slot, "trigger": "schedule", "worker_id": "tests"}
    values |= {"started_at": _clock(db) - ago} | columns
    if finished:
        values["finished_at"] = values["started_at"]
    return int(_insert(db, "job_history", values))


def _insert(db: psycopg.Connection[Any], table: str, values: dict[str, Any], key: str = "id") -> str:
    statement = sql.SQL("INSERT INTO {} ({}) VALUES ({}) RETURNING {}::text").format(
        sql.Identifier("signalbox", table),
        sql.SQL(", ").join(map(sql.Identifier, values)),
        sql.SQL(", ").join(sql.Placeholder() * len(values)),
        sql.Identifier(key),
    )
    row = db.execute(statement, list(values.values())).fetchone()
    assert row is not None
    return str(row[0])


def _clock(db: psycopg.Connection[Any]) -> datetime:
    row = db.execute("SELECT clock_timestamp()").fetchone()
    assert row is not None
    instant: datetime = row[0]
    return instant.astimezone(UTC)
