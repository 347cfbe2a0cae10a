"""One of the workers that claim at the same moment gets the job, and caps hold exactly."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from signalbox.submit.insert import submit
from signalbox.submit.new_job import NewJob
from signalbox.testing.rows import count
from tests.support.at_once import at_once
from tests.support.jobs import REGISTRY

CLAIM = "SELECT id::text FROM signalbox.claim_jobs(%s::uuid[], %s, 'tests', NULL, interval '1 min')"


def jobs(db: psycopg.Connection, number: int, **fields: Any) -> list[str]:
    new = [NewJob(job_type="do_nothing", **fields)] * number
    return [job.id for job in submit(db, REGISTRY, new, datetime.now(UTC))]


def claim(db: psycopg.Connection, ids: list[str]) -> list[str]:
    return [row[0] for row in db.execute(CLAIM, (ids, uuid4())).fetchall()]


def claim_at_once(dsn: str, turns: list[list[str]]) -> list[list[str]]:
    """Claim each list on its own connection; return what each got."""
    return at_once(*(partial(claim, ids=ids) for ids in turns), dsn=dsn)


def count_running(db: psycopg.Connection) -> int:
    return count(db, "signalbox.jobs WHERE status = 'running'")


def test_of_many_claims_of_the_same_jobs_each_job_goes_to_one(dsn: str, db: psycopg.Connection) -> None:
    ids = jobs(db, 50)
    got = claim_at_once(dsn, [ids, ids[::-1], ids, ids[::-1]])
    claimed = [id_ for one in got for id_ in one]
    assert sorted(claimed) == sorted(ids)
    attempts = db.execute("SELECT DISTINCT attempts, executions FROM signalbox.jobs").fetchall()
    assert attempts == [(1, 1)]


@pytest.mark.parametrize("kind", ["type", "tenant", "key", "lane"])
def test_a_cap_holds_exactly_however_many_take_from_it_at_once(dsn: str, db: psycopg.Connection, kind: str) -> None:
    ids = jobs(db, 24, tenant="acme", cap_key="mail")
    key = {"type": "do_nothing", "tenant": "acme", "key": "mail", "lane": "normal"}[kind]
    db.execute("INSERT INTO signalbox.job_caps (kind, key, max_running) VALUES (%s, %s, 5)", (kind, key))
    got = claim_at_once(dsn, [ids[start::8] for start in range(8)])
    assert sum(map(len, got)) == count_running(db) == 5


def test_a_rate_holds_exactly_however_many_take_from_it_at_once(dsn: str, db: psycopg.Connection) -> None:
    ids = jobs(db, 24, cap_key="mail")
    db.execute("INSERT INTO signalbox.job_caps (kind, key, rate, per_seconds) VALUES ('key', 'mail', 7, 3600)")
    got = claim_at_once(dsn, [ids[start::6] for start in range(6)])
    assert sum(map(len, got)) == count_running(db) == 1
    db.execute("UPDATE signalbox.job_caps SET next_at = now()")
    got = claim_at_once(dsn, [ids[start::6] for start in range(6)])
    assert (sum(map(len, got)), count_running(db)) == (1, 2)


def test_a_cap_that_is_changed_counts_from_the_next_claim_on(dsn: str, db: psycopg.Connection) -> None:
    first, second = jobs(db, 4, cap_key="mail"), jobs(db, 4, cap_key="mail")
    db.execute("INSERT INTO signalbox.job_caps (kind, key, max_running) VALUES ('key', 'mail', 1)")
    assert len(claim(db, first)) == 1
    db.execute("UPDATE signalbox.job_caps SET max_running = 3")
    assert len(claim(db, second)) == 2


def test_two_caps_of_one_job_both_hold(db: psycopg.Connection) -> None:
    ids = jobs(db, 6, tenant="acme", cap_key="mail")
    for kind, key, most in (("tenant", "acme", 4), ("key", "mail", 2)):
        db.execute("INSERT INTO signalbox.job_caps (kind, key, max_running) VALUES (%s, %s, %s)", (kind, key, most))
    assert len(claim(db, ids)) == 2


def test_an_ended_job_makes_room(db: psycopg.Connection) -> None:
    ids = jobs(db, 2, cap_key="mail")
    db.execute("INSERT INTO signalbox.job_caps (kind, key, max_running) VALUES ('key', 'mail', 1)")
    token = uuid4()
    [(first,)] = db.execute(CLAIM, (ids, token)).fetchall()
    verdict = f'[{{"id": "{first}", "token": "{token}", "status": "completed", "execution": "completed"}}]'
    db.execute("SELECT signalbox.end_attempts(%s::jsonb)", (verdict,))
    assert claim(db, ids) == [id_ for id_ in ids if id_ != first]
