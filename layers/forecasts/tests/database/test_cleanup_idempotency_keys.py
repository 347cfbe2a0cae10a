"""cleanup_idempotency_keys deletes expired keys and nothing else, and makes no one wait."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql

from forecasts.tasks import cleanup_idempotency_keys
from signalbox.testing.rows import count, runs_of
from signalbox.testing.stage import NOON, Stage
from tests.support.at_once import two_at_once

TASK = "cleanup_idempotency_keys"
KEYS = "forecasts.idempotency_keys"
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)


def keys(db: psycopg.Connection) -> list[str]:
    return [key for (key,) in db.execute("SELECT key FROM forecasts.idempotency_keys ORDER BY key").fetchall()]


def add_key(db: psycopg.Connection, key: str, expires_at: datetime | str) -> None:
    statement = "INSERT INTO forecasts.idempotency_keys (key, created_at, expires_at) VALUES (%s, %s, %s)"
    db.execute(statement, (key, NOON - 30 * DAY, expires_at))


def add_many(db: psycopg.Connection, number: int, expires_at: datetime = NOON - DAY, name: str = "old") -> None:
    """Add more than a batch: these go page by page."""
    db.execute(
        "INSERT INTO forecasts.idempotency_keys (key, response, created_at, expires_at) "
        "SELECT %s || '-' || n, jsonb_build_object('text', repeat('x', 300)), %s, %s FROM generate_series(1, %s) AS n",
        (name, NOON - 30 * DAY, expires_at, number),
    )


def test_keys_that_have_expired_go_and_the_others_stay(stage: Stage, db: psycopg.Connection) -> None:
    for key, age in [("expired", DAY), ("fresh", -DAY)]:
        add_key(db, key, NOON - age)
    assert stage.run(TASK)["items"] == 1
    assert keys(db) == ["fresh"]


def test_with_nothing_expired_nothing_happens(stage: Stage, db: psycopg.Connection) -> None:
    assert stage.run(TASK)["items"] == 0
    add_key(db, "fresh", NOON + DAY)
    assert stage.run(TASK, NOON + timedelta(hours=1), force=True)["items"] == 0
    assert keys(db) == ["fresh"]


@pytest.mark.parametrize(("late", "kept"), [(-SECOND, False), (timedelta(0), True), (SECOND, True)])
def test_key_expires_a_second_after_its_end_and_not_at_it(
    stage: Stage, db: psycopg.Connection, late: timedelta, kept: bool
) -> None:
    add_key(db, "edge", NOON + late)
    stage.run(TASK)
    assert keys(db) == (["edge"] if kept else [])


def test_keys_that_never_or_always_expired_stop_nothing(stage: Stage, db: psycopg.Connection) -> None:
    for key, expires_at in [("never", "infinity"), ("always", "-infinity"), ("expired", "2020-01-01Z")]:
        add_key(db, key, expires_at)
    assert stage.run(TASK)["items"] == 2
    assert keys(db) == ["never"]


def test_many_expired_keys_go_wherever_they_lie(stage: Stage, db: psycopg.Connection) -> None:
    for number in range(4):
        add_many(db, 4000, NOON - DAY, f"old{number}")
        add_many(db, 1000, NOON + DAY, f"fresh{number}")
    assert stage.run(TASK)["items"] == 16_000
    assert count(db, KEYS) == count(db, f"{KEYS} WHERE key LIKE 'fresh%'") == 4000


@pytest.mark.parametrize("many", [0, 20_000])
def test_a_key_that_somebody_holds_is_left_and_not_waited_for(
    stage: Stage, dsn: str, db: psycopg.Connection, many: int
) -> None:
    add_many(db, many)
    add_key(db, "held", NOON - DAY / 2)
    with psycopg.connect(dsn) as holder:
        holder.execute("UPDATE forecasts.idempotency_keys SET expires_at = %s WHERE key = 'held'", (NOON + DAY,))
        assert stage.run(TASK)["items"] == many  # would otherwise wait for ever
        assert keys(db) == ["held"]
    assert stage.run(TASK, force=True)["items"] == 0  # it was renewed
    assert keys(db) == ["held"]


def test_two_runs_at_once_delete_each_key_once(stage: Stage, db: psycopg.Connection) -> None:
    for number in range(10):
        add_many(db, 4000, NOON - 3 * DAY, f"old{number}")
    answers = two_at_once(stage, TASK, NOON - DAY, NOON)
    assert [answer["status"] for answer in answers] == ["succeeded"] * 2
    assert sum(answer["items"] for answer in answers) == 40_000
    assert keys(db) == []


def test_a_run_without_time_leaves_the_rest_to_a_continuation(stage: Stage, db: psycopg.Connection) -> None:
    add_many(db, 6000)
    first = stage.run(TASK, seconds=10)  # only the margin
    assert (first["items"], first["more"]) == (0, True)
    assert [answer["items"] for answer in stage.deliver()] == [6000]


def test_crashed_runs_deletions_stay_and_next_run_deletes_the_rest(stage: Stage, db: psycopg.Connection) -> None:
    add_many(db, 30_000)
    db.execute("VACUUM ANALYZE forecasts.idempotency_keys")
    db.execute(
        "CREATE FUNCTION crash() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'as the test wants it'; END $$; "
        "CREATE TRIGGER crash BEFORE DELETE ON forecasts.idempotency_keys FOR EACH ROW WHEN (OLD.key = 'old-29000') "
        "EXECUTE FUNCTION crash()"
    )
    with pytest.raises(psycopg.errors.RaiseException):
        stage.run(TASK)
    left = count(db, KEYS)
    assert 0 < left < 25_000
    db.execute("DROP TRIGGER crash ON forecasts.idempotency_keys")
    assert stage.run(TASK)["items"] == left
    assert [row["status"] for row in runs_of(db, TASK)] == ["failed", "succeeded"]


def test_a_run_for_a_past_day_deletes_what_that_day_would_have(stage: Stage, db: psycopg.Connection) -> None:
    for key, age in [("then", 3 * DAY), ("since", DAY)]:
        add_key(db, key, NOON - age)
    stage.run(TASK, reference_time=(NOON - 2 * DAY).isoformat())
    assert keys(db) == ["since"]


def test_few_are_found_by_the_index_and_many_by_their_pages(db: psycopg.Connection) -> None:
    add_many(db, 20_000, NOON + DAY, "fresh")
    add_many(db, 20_000)
    db.execute("VACUUM ANALYZE forecasts.idempotency_keys")
    values = {"before": NOON, "after": "-infinity", "batch": 5000, "first": "(100,0)", "end": "(200,0)"}
    assert "using idempotency_keys_expired" in plan_of(db, "delete_by_index", values)
    assert "Tid Range Scan" in plan_of(db, "delete_in_pages", values)
    assert "Tid Range Scan" in plan_of(db, "delete_unlocked_in_pages", values)


def plan_of(db: psycopg.Connection, query: str, values: dict[str, Any]) -> str:
    explain = sql.SQL("EXPLAIN ") + cleanup_idempotency_keys.KEYS.query(query)
    return "\n".join(line for (line,) in db.execute(explain, values).fetchall())
