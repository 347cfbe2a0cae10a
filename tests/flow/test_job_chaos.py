"""No job is lost, no effect doubled and no unstarted attempt charged while everything goes wrong that can. Ten
workers run jobs side by side, with one attempt each.

Workers are killed and frozen at work, answers to claims and ends get lost, each message comes up to three times,
PostgreSQL restarts twice, and the lanes are away for a while.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from signalbox.engine_pack import ENGINE
from signalbox.errors import Unavailable
from signalbox.migrate import migrations
from signalbox.packs.registries import JobTypeRegistry
from signalbox.submit.insert import submit
from signalbox.submit.new_job import NewJob
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.stage import Stage
from signalbox_laptop.postgres.embedded import EmbeddedPostgres
from tests.support.answer_cutter import AnswerCutter
from tests.support.job_crowd import JobCrowd
from tests.support.jobs.endure import ENDURE_TYPES

WORKERS, BATCH = 10, 60
TROUBLE_SECONDS, PATIENCE_SECONDS = 15.0, 240.0
LEAST_HURT = 4  # workers killed, and as many frozen
FROZEN_SECONDS = 1.5  # at least one turn of the sweeps, which take its leases for run out
CUTS = (b"claim_jobs", b"complete_job", b"end_attempts")
# As many of a type begin at once: the gap that docs/jobs.md names.
AT_ONCE = {"endure": 10, "endure_async": 20, "endure_within": 3}


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[EmbeddedPostgres]:
    """Start a server for this test alone, since it is restarted."""
    postgres = EmbeddedPostgres(tmp_path / "postgres", durable=True)
    postgres.start()
    try:
        yield postgres
    finally:
        postgres.stop()


@pytest.fixture
def lanes(monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsStandIn]:
    with AwsStandIn() as lanes:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "test")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", lanes.url)
        yield lanes


class Load:
    """Submit jobs as long as few of them wait."""

    def __init__(self, dsn: str, crowd: JobCrowd) -> None:
        self._dsn, self._crowd, self._chance = dsn, crowd, random.Random(11)
        self._job_types = JobTypeRegistry(ENDURE_TYPES)

    def turn(self) -> None:
        if self._crowd.waiting > 3 * WORKERS * BATCH:
            return
        new = [
            NewJob(
                job_type=self._chance.choice(list(AT_ONCE)),
                max_attempts=1,
                tenant=f"tenant-{n % 7}",
                payload={"seconds": self._chance.uniform(0, 0.2)},
            )
            for n in range(WORKERS * BATCH)
        ]
        with suppress(psycopg.Error), psycopg.connect(self._dsn, autocommit=True) as db:
            jobs = submit(db, self._job_types, new, datetime.now(UTC))
            self._crowd.types |= {job.id: job.job_type for job in jobs}
            self._crowd.put([job.id for job in jobs])


class Sweeps:
    """Run dispatch_jobs and rescue_jobs every second instead of each minute."""

    def __init__(self, stage: Stage) -> None:
        self._stage, self._at = stage.with_job_types(*ENDURE_TYPES), 0.0

    def turn(self) -> None:
        if time.monotonic() < self._at + 1:
            return
        self._at = time.monotonic()
        for task in ("rescue_jobs", "dispatch_jobs"):
            # The next turn finds what this one has not.
            with suppress(psycopg.Error, Unavailable):
                self._stage.run(task, datetime.now(UTC), seconds=20, force=True)


class Trouble:
    """Make things go wrong as time goes on."""

    def __init__(self, crowd: JobCrowd, cutter: AnswerCutter, planned: dict[float, Callable[[], object]]) -> None:
        self._crowd, self._cutter, self._planned = crowd, cutter, planned
        self._chance, self._began, self._frozen_at = random.Random(7), time.monotonic(), 0.0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    @property
    def is_on(self) -> bool:
        """Say whether more is to come: a slow machine takes longer until enough has gone wrong."""
        hurt = min(len(self._crowd.killed), len(self._crowd.frozen))
        return self.seconds < TROUBLE_SECONDS or bool(self._planned) or hurt < LEAST_HURT or not self._has_cut_all

    @property
    def _has_cut_all(self) -> bool:
        return set(self._cutter.cut) == set(CUTS)

    def turn(self) -> None:
        for at in [at for at in self._planned if at <= self.seconds]:
            self._planned.pop(at)()
        if self._chance.random() < 0.08:
            self._crowd.kill_one()
        if self._chance.random() < 0.08:
            self._crowd.freeze_one()
        if time.monotonic() > self._frozen_at + FROZEN_SECONDS:
            self._frozen_at = time.monotonic()
            self._crowd.thaw()
        self._cutter.cut_next(self._chance.choice(CUTS))

    def stop(self) -> None:
        self._crowd.thaw()
        self._cutter.cut_next(b"nothing says this")


def open_jobs(dsn: str, at_work: list[str]) -> int | None:
    """Count open jobs. End leases that nobody renews any more, and skip all delays."""
    with suppress(psycopg.Error), psycopg.connect(dsn, autocommit=True) as db:
        db.execute(
            "UPDATE signalbox.jobs SET scheduled_for = now(), send_at = now() "
            "WHERE status = 'pending' AND send_at > now() OR "
            "status = 'queued' AND send_at > now() AND updated_at < now() - interval '5 s'"
        )
        db.execute(
            "UPDATE signalbox.jobs SET lease_expires_at = now() "
            "WHERE status = 'running' AND split_part(worker_id, '/', 1) <> ALL (%s)",
            (at_work,),
        )
        row = db.execute("SELECT count(*) FROM signalbox.jobs WHERE status IN ('pending', 'queued', 'running')")
        return int(row.fetchall()[0][0])
    return None


def unstarted(rows: list[Any], starts: set[tuple[str, str]], hurt: set[str]) -> list[Any]:
    """Return charged attempts whose code did not begin. Leave out those that one claim of each type held when its
    worker was killed or frozen, or failed: it may have lost the claim's answer with the database, and then its time."""
    charged = [row for row in rows if row[:2] not in starts]
    gap = Counter((request_id, job_type) for _, _, job_type, request_id, status in charged if status == "lost")
    return [row for row in charged if row[3] not in hurt or row[4] != "lost" or gap[row[3], row[2]] > AT_ONCE[row[2]]]


def test_nothing_is_lost_doubled_or_charged_unstarted(
    postgres: EmbeddedPostgres, lanes: AwsStandIn, invokes: AwsStandIn, tmp_path: Path
) -> None:
    dsn, starts_file = postgres.dsn, tmp_path / "starts"
    with psycopg.connect(dsn, autocommit=True) as db:
        migrations.apply(db, [ENGINE], "tests")
        db.execute("CREATE TABLE notes (job_id uuid)")
    planned: dict[float, Callable[[], object]] = {
        4: postgres.restart,
        6: lambda: lanes.away.add("normal"),
        10: postgres.restart,
        12: lanes.away.clear,
    }
    with AnswerCutter(dsn) as cutter, Stage(dsn, invokes, budget_margin_seconds="0") as stage:
        crowd = JobCrowd(cutter.dsn, lanes.url, starts_file, WORKERS, seed=7)
        load, sweeps, trouble = Load(dsn, crowd), Sweeps(stage), Trouble(crowd, cutter, planned)
        left: int | None = None
        try:
            while (left != 0 or trouble.is_on) and trouble.seconds < PATIENCE_SECONDS:
                crowd.turn(BATCH)
                if trouble.is_on:
                    load.turn()
                    trouble.turn()
                else:
                    trouble.stop()
                sweeps.turn()
                crowd.put([message["job_id"] for message in lanes.take()])
                left = open_jobs(dsn, crowd.at_work)
                time.sleep(0.02)
        finally:
            crowd.stop()
    starts = [(job_id, token) for job_id, token in map(str.split, starts_file.read_text().splitlines())]
    with psycopg.connect(dsn) as db:
        states: dict[str, int] = dict(db.execute("SELECT status, count(*) FROM signalbox.jobs GROUP BY 1").fetchall())
        charged = db.execute(
            "SELECT job_id::text, lease_token::text, job_type, split_part(worker_id, '/', 1), status "
            "FROM signalbox.job_executions WHERE status <> 'released'"
        ).fetchall()
        wrong_notes = db.execute(
            "SELECT j.id, j.status, count(n) FROM signalbox.jobs AS j LEFT JOIN notes AS n ON n.job_id = j.id "
            "WHERE j.job_type = 'endure_within' GROUP BY 1, 2 HAVING count(n) <> (j.status = 'completed')::int"
        ).fetchall()
        letters = db.execute("SELECT count(*), count(DISTINCT original_job_id) FROM signalbox.dead_letter_jobs")
        [letter_counts] = letters.fetchall()
    assert states.keys() == {"completed", "failed"}
    assert letter_counts == (states["failed"], states["failed"])
    assert wrong_notes == []
    assert len(set(starts)) == len(starts)
    assert unstarted(charged, set(starts), crowd.killed | crowd.frozen | crowd.failed) == []
    assert not trouble.is_on
    assert states["completed"] > states["failed"]
