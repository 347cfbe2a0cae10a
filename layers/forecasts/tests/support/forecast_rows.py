"""Make the platform's rows: only legal ones, with what a test does not name filled in."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

THEN = datetime(2025, 1, 1, tzinfo=UTC)


def plan(db: psycopg.Connection, name: str = "pro", api_calls_per_day: int = 1000, watchpoints: int = 10) -> str:
    db.execute(
        "INSERT INTO forecasts.plan_limits VALUES (%s, %s, %s) ON CONFLICT (plan) DO UPDATE "
        "SET api_calls_per_day = excluded.api_calls_per_day, watchpoints = excluded.watchpoints",
        (name, api_calls_per_day, watchpoints),
    )
    return name


def organization(db: psycopg.Connection, **columns: Any) -> UUID:
    if "plan" not in columns:
        columns["plan"] = plan(db)
    return insert(db, "organizations", {"name": f"org-{uuid4().hex[:8]}", "created_at": THEN} | columns)


def watchpoint(db: psycopg.Connection, organization_id: UUID, **columns: Any) -> UUID:
    defaults = {"name": "a place", "tile_id": "tile-1", "created_at": THEN}
    return insert(db, "watchpoints", defaults | {"organization_id": organization_id} | columns)


def notification(db: psycopg.Connection, organization_id: UUID, **columns: Any) -> UUID:
    return insert(db, "notifications", {"organization_id": organization_id, "payload": {"text": "rain"}} | columns)


def delivery(db: psycopg.Connection, notification_id: UUID, **columns: Any) -> UUID:
    return insert(db, "notification_deliveries", {"notification_id": notification_id, "channel": "email"} | columns)


def forecast_run(db: psycopg.Connection, run_timestamp: datetime, **columns: Any) -> UUID:
    defaults = {"model": "medium_range", "status": "running", "started_at": run_timestamp, "created_at": run_timestamp}
    return insert(db, "forecast_runs", defaults | {"run_timestamp": run_timestamp} | columns)


def insert(db: psycopg.Connection, table: str, columns: dict[str, Any]) -> UUID:
    """Insert one row of the pack's schema; return its id."""
    values = {name: Jsonb(value) if isinstance(value, dict | list) else value for name, value in columns.items()}
    statement = sql.SQL("INSERT INTO forecasts.{} ({}) VALUES ({}) RETURNING id").format(
        sql.Identifier(table),
        sql.SQL(", ").join(map(sql.Identifier, values)),
        sql.SQL(", ").join(map(sql.Placeholder, values)),
    )
    row = db.execute(statement, values).fetchone()
    assert row is not None
    made: UUID = row[0]
    return made
