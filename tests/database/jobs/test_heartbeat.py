"""The heartbeat: says that a batch is alive, writes how far its job is, and hears of cancellations."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from signalbox.jobs.context import Progress
from signalbox.jobs.heartbeat import Heartbeat
from signalbox.jobs.lease import Lease
from tests.support.workshop import Workshop

INTERVAL = 0.02
PATIENCE = 20.0


def until(holds: Callable[[], Any]) -> None:
    """The thread beats when it likes: what it does is looked for, and never long waited for."""
    ends = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < ends
        time.sleep(INTERVAL)


@pytest.fixture
def token() -> UUID:
    return uuid4()


@pytest.fixture
def jobs(workshop: Workshop, token: UUID) -> list[str]:
    """Two that are claimed; the first is being worked on."""
    ids = sorted(workshop.submit().id for _ in range(2))
    Lease(token, "tests", None, timedelta(minutes=5)).claim(workshop.db, ids)
    return ids


def connections(db: psycopg.Connection) -> int:
    row = db.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()").fetchone()
    assert row is not None
    return int(row[0])


def test_all_jobs_of_the_batch_are_heard_of_and_the_one_at_work_says_how_far_it_is(
    workshop: Workshop, token: UUID, jobs: list[str]
) -> None:
    progress = Progress(percent=40, message="two of five")
    with Heartbeat(workshop.engine.tools.database, token, INTERVAL) as heartbeat:
        heartbeat.working_on(jobs[0], progress)
        until(lambda: workshop.job(jobs[0])["progress_percent"] == 40)
    first, second = (workshop.job(job_id) for job_id in jobs)
    assert first["heartbeat_at"] is not None
    assert second["heartbeat_at"] is not None
    assert (first["progress_message"], second["progress_percent"]) == ("two of five", 0)


def test_who_works_on_a_job_hears_that_it_is_to_be_cancelled(workshop: Workshop, token: UUID, jobs: list[str]) -> None:
    progress = Progress()
    with Heartbeat(workshop.engine.tools.database, token, INTERVAL) as heartbeat:
        heartbeat.working_on(jobs[0], progress)
        workshop.db.execute("UPDATE signalbox.jobs SET cancel_requested_at = now()")
        until(lambda: progress.cancel_asked)
        assert heartbeat.unwanted == set(jobs)


def test_a_batch_that_ends_within_the_interval_never_opens_a_connection(
    workshop: Workshop, token: UUID, jobs: list[str]
) -> None:
    before = connections(workshop.db)
    with Heartbeat(workshop.engine.tools.database, token, 60):
        assert connections(workshop.db) == before
    assert workshop.job(jobs[0])["heartbeat_at"] is None


def test_a_connection_that_breaks_is_opened_again_and_the_last_is_closed(
    workshop: Workshop, token: UUID, jobs: list[str]
) -> None:
    before = connections(workshop.db)
    with Heartbeat(workshop.engine.tools.database, token, INTERVAL):
        until(lambda: workshop.job(jobs[0])["heartbeat_at"])
        workshop.db.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE application_name = 'signalbox' AND datname = current_database()"
        )
        seen = workshop.job(jobs[0])["heartbeat_at"]
        until(lambda: workshop.job(jobs[0])["heartbeat_at"] > seen)
    until(lambda: connections(workshop.db) <= before)
    assert workshop.job(jobs[0])["status"] == "running"


def test_another_lease_is_none_of_its_business(workshop: Workshop, jobs: list[str]) -> None:
    mine = workshop.submit().id
    token = uuid4()
    Lease(token, "tests", None, timedelta(minutes=5)).claim(workshop.db, [mine])
    with Heartbeat(workshop.engine.tools.database, token, INTERVAL):
        until(lambda: workshop.job(mine)["heartbeat_at"])
    assert workshop.job(jobs[0])["heartbeat_at"] is None
