"""Running jobs that nobody hears of are marked, and the mark goes when they are heard of again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from tests.support.invoke_recorder import InvokeRecorder
from tests.support.job_rows import job, queued_job, running_job
from tests.support.sweeps import Sweeps, at_once

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


@pytest.fixture
def sweeps(dsn: str, invokes: InvokeRecorder) -> Iterator[Sweeps]:
    with Sweeps(dsn, invokes) as sweeps:
        yield sweeps


def job_heard_of(db: psycopg.Connection, ago: timedelta, *, by: str = "heartbeat_at", **columns: Any) -> str:
    heard: dict[str, Any] = {by: datetime.now(UTC) - ago}
    return running_job(db, **heard, **columns)


def health(db: psycopg.Connection, *job_ids: str) -> list[str]:
    return [job(db, job_id)["health_status"] for job_id in job_ids]


def mark(sweeps: Sweeps) -> int:
    return int(sweeps.invoke("mark_stale", force=True)["items"])


def test_with_nothing_at_work_nothing_is_marked(sweeps: Sweeps, db: psycopg.Connection) -> None:
    queued_job(db, datetime.now(UTC))
    assert mark(sweeps) == 0


@pytest.mark.parametrize("by", ["heartbeat_at", "started_at"])
def test_a_job_is_stale_after_five_minutes_of_silence(sweeps: Sweeps, db: psycopg.Connection, by: str) -> None:
    """In its first seconds it has no heartbeat yet: then its start counts."""
    silent = job_heard_of(db, 5 * MINUTE + SECOND, by=by)
    heard = job_heard_of(db, 5 * MINUTE - 30 * SECOND, by=by)
    assert mark(sweeps) == 1
    assert health(db, silent, heard) == ["STALE", "HEALTHY"]
    assert mark(sweeps) == 0


def test_a_job_that_began_long_ago_is_healthy_as_long_as_it_is_heard_of(sweeps: Sweeps, db: psycopg.Connection) -> None:
    busy = job_heard_of(db, SECOND, started_at=datetime.now(UTC) - 60 * MINUTE)
    mark(sweeps)
    assert health(db, busy) == ["HEALTHY"]


def test_a_job_whose_lease_is_over_has_failed(sweeps: Sweeps, db: psycopg.Connection) -> None:
    lost = job_heard_of(db, SECOND, lease=-SECOND)
    stale = job_heard_of(db, 6 * MINUTE, lease=-SECOND, health_status="STALE")
    assert mark(sweeps) == 2
    assert health(db, lost, stale) == ["FAILED", "FAILED"]


def test_a_job_that_its_worker_is_writing_is_passed_by(sweeps: Sweeps, dsn: str, db: psycopg.Connection) -> None:
    beating, silent = job_heard_of(db, 6 * MINUTE), job_heard_of(db, 6 * MINUTE)
    with psycopg.connect(dsn) as worker:
        worker.execute("UPDATE signalbox.jobs SET heartbeat_at = now() WHERE id = %s", (beating,))
        assert mark(sweeps) == 1
    assert health(db, beating, silent) == ["HEALTHY", "STALE"]


def test_two_at_once_mark_each_job_once(dsn: str, invokes: InvokeRecorder, db: psycopg.Connection) -> None:
    for _ in range(40):
        job_heard_of(db, 6 * MINUTE)
    with Sweeps(dsn, invokes) as one, Sweeps(dsn, invokes) as other:
        marked = at_once(
            lambda: mark(one),
            lambda: int(other.invoke("mark_stale", reference_time="2026-03-10T12:01:00Z")["items"]),
        )
    assert sum(marked) == 40
