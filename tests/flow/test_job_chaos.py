"""Ten workers, ten thousand jobs, and everything goes wrong that can: no job is lost, no effect is doubled.

Workers are killed in the middle of their batches, each message comes up to three times, PostgreSQL restarts twice, and
the lanes are away for a while.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from local.postgres import EmbeddedPostgres
from signalbox import migrations
from signalbox.errors import Unavailable
from signalbox.jobs.catalogue import Catalogue
from signalbox.jobs.submission import NewJob, submit
from signalbox.packs import ENGINE
from tests.support.invoke_recorder import InvokeRecorder
from tests.support.job_crowd import JobCrowd
from tests.support.jobs import TEST_JOB_TYPES
from tests.support.lane_stand_in import LaneStandIn
from tests.support.stage import Stage
from tests.support.workshop import with_job_types

JOBS, WORKERS, BATCH = 10_000, 10, 100
PATIENCE_SECONDS = 240


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[EmbeddedPostgres]:
    """One of its own, since it is restarted."""
    postgres = EmbeddedPostgres(tmp_path / "postgres", durable=True)
    postgres.start()
    try:
        yield postgres
    finally:
        postgres.stop()


@pytest.fixture
def lanes(monkeypatch: pytest.MonkeyPatch) -> Iterator[LaneStandIn]:
    with LaneStandIn() as lanes:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "test")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", lanes.url)
        yield lanes


def prepare(dsn: str) -> list[str]:
    with psycopg.connect(dsn, autocommit=True) as db:
        migrations.apply(db, [ENGINE], "tests")
        db.execute("CREATE TABLE notes (job_id uuid, subject text)")
        kinds = ["note_job", "do_nothing"]
        new = [
            NewJob(job_type=kinds[n % 2], max_attempts=6, tenant=f"tenant-{n % 7}", timeout=timedelta(seconds=2))
            for n in range(JOBS)
        ]
        return [job.id for job in submit(db, Catalogue(TEST_JOB_TYPES), new, datetime.now(UTC))]


class Sweeps:
    """dispatch_jobs and rescue_jobs, every second where they run each minute."""

    def __init__(self, stage: Stage) -> None:
        self._engine, self._stage, self._at = with_job_types(stage.engine), stage, 0.0

    def turn(self) -> None:
        if time.monotonic() < self._at + 1:
            return
        self._at = time.monotonic()
        for task in ("rescue_jobs", "dispatch_jobs"):
            # The next turn finds what this one has not.
            with suppress(psycopg.Error, Unavailable):
                self._engine.archive({"task": task, "force": True}, self._stage.invocation(datetime.now(UTC), 20))


def open_jobs(dsn: str) -> int | None:
    try:
        with psycopg.connect(dsn, autocommit=True) as db:
            # What waits for its backoff would make the test wait as well.
            db.execute(
                "UPDATE signalbox.jobs SET scheduled_for = now(), send_at = now() "
                "WHERE status = 'pending' AND send_at > now() OR "
                "status = 'queued' AND send_at > now() AND updated_at < now() - interval '20 s'"
            )
            # No invocation lasts for so long: these leases are those of workers that were killed.
            db.execute(
                "UPDATE signalbox.jobs SET lease_expires_at = now() "
                "WHERE status = 'running' AND started_at < now() - interval '6 s'"
            )
            row = db.execute("SELECT count(*) FROM signalbox.jobs WHERE status <> 'completed'").fetchone()
            return row[0] if row else None
    except psycopg.Error:
        return None


def make_trouble(troubles: dict[float, Callable[[], object]], left: int) -> None:
    """What is due when so many jobs are left."""
    for share in [share for share in troubles if left < share * JOBS]:
        troubles.pop(share)()


def test_nothing_is_lost_and_no_transactional_effect_is_doubled(
    postgres: EmbeddedPostgres, lanes: LaneStandIn, invokes: InvokeRecorder
) -> None:
    dsn, chance = postgres.dsn, random.Random(7)
    ids = prepare(dsn)
    crowd = JobCrowd(dsn, lanes.url, WORKERS, seed=7)
    crowd.put(ids)
    began, left = time.monotonic(), JOBS
    troubles: dict[float, Callable[[], object]] = {
        0.75: postgres.restart,
        0.6: lambda: lanes.away.add("normal"),
        0.4: postgres.restart,
        0.3: lanes.away.clear,
    }
    with Stage(dsn, invokes, budget_margin_seconds="0") as stage:
        sweeps = Sweeps(stage)
        try:
            while left and time.monotonic() < began + PATIENCE_SECONDS:
                crowd.turn(BATCH)
                if crowd.killed < 25 and chance.random() < 0.15:
                    crowd.kill_one()
                sweeps.turn()
                crowd.put([notice["job_id"] for notice in lanes.take()])
                found = open_jobs(dsn)
                left = left if found is None else found
                make_trouble(troubles, left)
                time.sleep(0.02)
        finally:
            crowd.stop()
    with psycopg.connect(dsn) as db:
        states: dict[str, int] = dict(db.execute("SELECT status, count(*) FROM signalbox.jobs GROUP BY 1").fetchall())
        notes = db.execute("SELECT count(*), count(DISTINCT job_id) FROM notes").fetchone()
        leases = db.execute("SELECT count(*) FROM signalbox.jobs WHERE lease_token IS NOT NULL").fetchone()
    assert (states, notes, leases) == ({"completed": JOBS}, (JOBS // 2, JOBS // 2), (0,))
    assert crowd.killed >= 10
    assert troubles == {}
