"""A slot survives workers that race for it, vanish, or run out of time."""

from __future__ import annotations

import os
import signal
from collections import Counter
from datetime import timedelta

import psycopg
import pytest

from signalbox.testing.rows import count, runs_of
from signalbox.testing.stage import NOON, Stage
from tests.support.crowd import deliver_at_once, one_worker

# A worker stands in the middle of its transaction.
HALF_WAY = """
    SELECT count(*) = 1 FROM pg_stat_activity
    WHERE state = 'idle in transaction' AND query LIKE '%troubles%' AND datname = current_database()
"""
pytestmark = pytest.mark.usefixtures("effects")


@pytest.mark.parametrize("task", ["note_run", "wait_for_crowd"])  # one is done when the others come, one at work
def test_one_of_fifty_parallel_deliveries_takes_effect_and_others_skip(
    stage: Stage, dsn: str, db: psycopg.Connection, task: str
) -> None:
    answers = deliver_at_once(dsn, task, NOON, times=50)

    assert Counter(answer["status"] for answer in answers) == {"succeeded": 1, "skipped": 49}
    assert count(db, "effects") == 1
    assert Counter(row["status"] for row in runs_of(db, task)) == {"succeeded": 1, "skipped": 49}
    assert count(db, "signalbox.job_locks") == 0


@pytest.mark.parametrize(("task", "expected"), [("stop_halfway", "succeeded"), ("stop_alone", "missed")])
def test_second_of_two_parallel_slots_runs_if_overlap_is_allowed(
    stage: Stage, dsn: str, db: psycopg.Connection, task: str, expected: str
) -> None:
    db.execute("INSERT INTO troubles VALUES (1)")
    with one_worker(dsn, task, NOON):
        wait_until(db, HALF_WAY)
        db.execute("DELETE FROM troubles")
        later = NOON + timedelta(hours=1)
        assert stage.run(task, later, scheduled_time=later.isoformat())["status"] == expected


def test_slot_of_a_killed_worker_runs_again_after_its_lease(stage: Stage, dsn: str, db: psycopg.Connection) -> None:
    db.execute("INSERT INTO troubles VALUES (1)")
    with one_worker(dsn, "stop_halfway", NOON) as worker:
        wait_until(db, HALF_WAY)
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
    assert [row[0] for row in db.execute("SELECT worker_id FROM effects").fetchall()] == ["first"]

    assert stage.run("stop_halfway", NOON)["status"] == "skipped"  # the lease has not passed yet
    assert stage.run("sweep_runs", NOON, force=True)["items"] == 0
    db.execute("DELETE FROM troubles")
    db.execute("UPDATE signalbox.job_locks SET expires_at = now()")
    assert stage.run("sweep_runs", NOON, force=True)["items"] == 2
    assert [answer["status"] for answer in stage.deliver()] == ["succeeded"]

    assert [row[0] for row in db.execute("SELECT worker_id FROM effects").fetchall()] == ["first", "second"]
    assert [row["status"] for row in runs_of(db, "stop_halfway")] == ["failed", "skipped", "succeeded"]


def test_a_chain_of_continuations_works_through_a_million_rows_each_once(stage: Stage, db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE marks AS SELECT id, 0 AS marked FROM generate_series(1, 1000000) AS id")
    db.execute("CREATE INDEX ON marks (id) WHERE marked = 0")
    db.execute("VACUUM ANALYZE marks")

    first = stage.run("mark_rows", NOON, seconds=12)  # the margin is ten: two seconds of work
    rest = stage.deliver(NOON + timedelta(minutes=1), seconds=12)

    answers = [first, *rest]
    assert [answer.get("more", False) for answer in answers] == [True] * len(rest) + [False]
    assert sum(answer["items"] for answer in answers) == 1_000_000
    assert db.execute("SELECT min(marked), max(marked) FROM marks").fetchone() == (1, 1)
    rows = runs_of(db, "mark_rows")
    assert {row["slot"] for row in rows} == {rows[0]["slot"]}
    assert [row["trigger"] for row in rows] == ["manual"] + ["continuation"] * len(rest)
    assert [row["step"] for row in rows] == list(range(len(answers)))
    assert stage.run("mark_rows", NOON)["status"] == "skipped"


def test_a_chain_ends_at_its_cap_and_says_so(stage: Stage, db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE marks AS SELECT id, 0 AS marked FROM generate_series(1, 100) AS id")
    capped = stage.another(max_continuations="3")
    capped.run("mark_rows", NOON, seconds=10)  # the margin is ten: no time for a single batch
    answers = capped.deliver(seconds=10)
    assert [answer.get("reason") for answer in answers] == [
        None, None, "work is left after 3 continuations, the limit for one slot",
    ]  # fmt: skip
    assert not stage.aws.invoked


def wait_until(db: psycopg.Connection, query: str) -> None:
    """Wait for a state that another process brings about; the test's own timeout ends the wait."""
    while db.execute(query.encode()).fetchone() != (True,):
        pass
