"""Make canaries and what they expect, and read what was noted of those that are wrong."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg

from tests.support import forecast_rows as rows


def canary(db: psycopg.Connection, metadata: Any, **columns: Any) -> UUID:
    return rows.watchpoint(db, rows.organization(db), metadata=metadata, **columns)


def expecting(expected: Any) -> dict[str, Any]:
    return {"system_role": "canary", "expected_triggered": expected}


def mismatches(db: psycopg.Connection) -> list[tuple[str, Any]]:
    statement = "SELECT entity_id, detail FROM forecasts.audit_logs WHERE action = 'canary.mismatched' ORDER BY id"
    return db.execute(statement).fetchall()
