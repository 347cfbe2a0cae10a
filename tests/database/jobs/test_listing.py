"""Lists and previews read what they show, however many jobs have ended."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from signalbox.operate.filters import JobFilter
from signalbox.operate.listing import SQL

ENDED = (
    "INSERT INTO signalbox.jobs (job_type, lane, max_attempts, timeout_ms, status, completed_at, updated_at) "
    "SELECT 'do_nothing', 'normal', 3, 1000, 'completed', now(), now() FROM generate_series(1, %s)"
)


def plan(db: psycopg.Connection[Any], query: str, **given: Any) -> str:
    page = {"limit": 50, "before_id": None, "statuses": ["completed"]}
    rows = db.execute(f"EXPLAIN {SQL[query]}".encode(), {**JobFilter(**given).values, **page}).fetchall()
    return "\n".join(row[0] for row in rows)


@pytest.mark.parametrize("query", ["list_jobs", "pick"])
def test_page_of_jobs_is_read_along_the_primary_key(db: psycopg.Connection[Any], query: str) -> None:
    db.execute(ENDED, (20_000,))
    db.execute("VACUUM ANALYZE signalbox.jobs")
    found = plan(db, query)
    assert "Index Scan Backward using jobs_pkey" in found
    assert "Sort" not in found
