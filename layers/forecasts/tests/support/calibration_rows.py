"""Make what calibration reads and brings back. Coefficients are JSON text, as they are compared as written."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import psycopg

from signalbox.testing.stage import NOON
from tests.support import forecast_rows as rows

SECOND = timedelta(seconds=1)


def verified_run(db: psycopg.Connection, model: str = "nowcast") -> UUID:
    return rows.forecast_run(db, NOON - timedelta(days=1), status="complete", model=model)


def samples(
    db: psycopg.Connection,
    run: UUID,
    tile_id: str,
    number: int = 100,
    *,
    metric: str = "rmse",
    at: datetime = NOON - SECOND,
) -> None:
    values = {"tile_id": tile_id, "metric": metric, "value": 1.0, "sample_count": number, "created_at": at}
    rows.insert(db, "verification_results", {"forecast_run_id": run} | values)


def coefficients(db: psycopg.Connection, tile_id: str, text: str = '{"gain": 1}') -> None:
    """Set the coefficients of a tile."""
    db.execute(
        "INSERT INTO forecasts.calibration_coefficients (tile_id, coefficients) VALUES (%s, %s::jsonb) "
        "ON CONFLICT (tile_id) DO UPDATE SET coefficients = excluded.coefficients, updated_at = clock_timestamp()",
        (tile_id, text),
    )


def candidate(
    db: psycopg.Connection,
    tile_id: str,
    text: str,
    *,
    reason: str = "too far",
    created_at: datetime = NOON,
    reviewed: bool = False,
) -> str:
    """Add a candidate; `reviewed` means just now, by the clock, as people do."""
    row = db.execute(
        "INSERT INTO forecasts.calibration_candidates (tile_id, proposed, violation_reason, created_at, reviewed_at) "
        "VALUES (%s, %s::jsonb, %s, %s, CASE WHEN %s THEN clock_timestamp() END) RETURNING id::text",
        (tile_id, text, reason, created_at, reviewed),
    ).fetchone()
    assert row is not None
    return str(row[0])
