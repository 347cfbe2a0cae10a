"""Running jobs without a heartbeat are marked, and unmarked at the next one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from signalbox.testing.rows import job, queued_job, running_job
from signalbox.testing.stage import Stage
from tests.support.at_once import at_once

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def job_heard_of(db: psycopg.Connection, ago: timedelta, *, by: str = "heartbeat_at", **columns: Any) -> str:
    heard: dict[str, Any] = {by: datetime.now(UTC) - ago}
    return running_job(db, **heard, **columns)


def health(db: psycopg.Connection, *job_ids: str) -> list[str]:
    return [job(db, job_id)["health_status"] for job_id in job_ids]


def mark(stage: Stage) -> int:
    return int(stage.run("mark_stale", force=True)["items"])


def test_with_nothing_at_work_nothing_is_marked(stage: Stage, db: psycopg.Connection) -> None:
    queued_job(db, datetime.now(UTC))
    assert mark(stage) == 0


@pytest.mark.parametrize("by", ["heartbeat_at", "started_at"])
def test_a_job_is_stale_after_five_minutes_of_silence(stage: Stage, db: psycopg.Connection, by: str) -> None:
    """Until the first heartbeat the job's start counts."""
    silent = job_heard_of(db, 5 * MINUTE + SECOND, by=by)
    heard = job_heard_of(db, 5 * MINUTE - 30 * SECOND, by=by)
    assert mark(stage) == 1
    assert health(db, silent, heard) == ["STALE", "HEALTHY"]
    assert mark(stage) == 0


def test_job_that_began_long_ago_is_healthy_while_its_heartbeat_is_recent(stage: Stage, db: psycopg.Connection) -> None:
    busy = job_heard_of(db, SECOND, started_at=datetime.now(UTC) - 60 * MINUTE)
    mark(stage)
    assert health(db, busy) == ["HEALTHY"]


def test_a_job_whose_lease_is_over_has_failed(stage: Stage, db: psycopg.Connection) -> None:
    lost = job_heard_of(db, SECOND, lease=-SECOND)
    stale = job_heard_of(db, 6 * MINUTE, lease=-SECOND, health_status="STALE")
    assert mark(stage) == 2
    assert health(db, lost, stale) == ["FAILED", "FAILED"]


def test_a_job_that_its_worker_is_writing_is_passed_by(stage: Stage, dsn: str, db: psycopg.Connection) -> None:
    beating, silent = job_heard_of(db, 6 * MINUTE), job_heard_of(db, 6 * MINUTE)
    with psycopg.connect(dsn) as worker:
        worker.execute("UPDATE signalbox.jobs SET heartbeat_at = now() WHERE id = %s", (beating,))
        assert mark(stage) == 1
    assert health(db, beating, silent) == ["HEALTHY", "STALE"]


def test_two_at_once_mark_each_job_once(stage: Stage, db: psycopg.Connection) -> None:
    for _ in range(40):
        job_heard_of(db, 6 * MINUTE)
    other = stage.another()
    marked = at_once(
        lambda: mark(stage),
        lambda: int(other.run("mark_stale", reference_time="2026-03-10T12:01:00Z")["items"]),
    )
    assert sum(marked) == 40
