"""Show one job with its attempts, dependencies, dependents, group, dead letter, schedule and audit log."""

from __future__ import annotations

from typing import Any

from psycopg.rows import dict_row

from signalbox.errors import JobUnknown
from signalbox.operate import audit
from signalbox.operate.explain import explain_job
from signalbox.operate.short_ids import require_id
from signalbox.postgres.connection import Connection
from signalbox.postgres.json_rows import json_row
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)


def show_job(db: Connection, id_: str, tenant: str | None = None) -> dict[str, Any]:
    """Return all columns of the job, and at most a hundred rows of everything else, of that tenant alone."""
    found = _one(db, "find", id=require_id("job", id_))
    if found is None:
        raise JobUnknown(_unknown(id_))
    job = found["job"] | {name: found[name] for name in ("duration_ms", "estimated_ms", "silent_seconds")}
    is_held = job["held_by"] or job["status"] == "paused"
    return {
        "job": job,
        "waits": explain_job(db, id_, tenant) if job["completed_at"] is None and job["status"] != "running" else None,
        "holds": _rows(db, "list_holds", id=id_) if is_held and tenant is None else [],
        "executions": _rows(db, "list_attempts", id=id_),
        "files": _rows(db, "list_files", id=id_),
        "depends_on": _rows(db, "list_parents", id=id_, tenant=tenant),
        "dependents": _rows(db, "list_dependents", id=id_, tenant=tenant),
        "children": _rows(db, "list_children", id=id_, tenant=tenant),
        "group": _one(db, "find_group", group=job["job_group"]) if tenant is None else None,
        "dead_letter": _one(db, "find_dead_letter", id=id_),
        "schedule": _one(db, "find_schedule", schedule=job["schedule_id"]),
        "orders": audit.list_newest(db, "job", id_),
    }


def show_progress(db: Connection, id_: str) -> dict[str, Any]:
    """Return how far a job is, which costs one row: for those who ask again and again."""
    found = _one(db, "find_progress", id=require_id("job", id_))
    if found is None:
        raise JobUnknown(_unknown(id_))
    return found


def _unknown(id_: str) -> str:
    return f"no job has the id {id_}; it may have been pruned: `signalbox jobs` lists those there are"


def _one(db: Connection, query: str, **values: Any) -> dict[str, Any] | None:
    return next(iter(_rows(db, query, **values)), None) if all(values.values()) else None


def _rows(db: Connection, query: str, **values: Any) -> list[dict[str, Any]]:
    with db.cursor(row_factory=dict_row) as cursor:
        return [json_row(row) for row in cursor.execute(SQL[query], values).fetchall()]
