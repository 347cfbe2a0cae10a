"""cleanup_security_events deletes what is older than its retention, and nothing else."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

from signalbox.testing.stage import NOON, Stage

TASK = "cleanup_security_events"
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)


def kinds(db: psycopg.Connection) -> list[str]:
    return [kind for (kind,) in db.execute("SELECT kind FROM forecasts.security_events ORDER BY id").fetchall()]


def add_events(db: psycopg.Connection, kind: str, age: timedelta, number: int = 1) -> None:
    db.execute(
        "INSERT INTO forecasts.security_events (kind, source_ip, attempted_at) "
        "SELECT %s, '203.0.113.7', %s FROM generate_series(1, %s)",
        (kind, NOON - age, number),
    )


def test_events_older_than_a_week_go_to_the_second(stage: Stage, db: psycopg.Connection) -> None:
    for kind, age in [("older", 7 * DAY + SECOND), ("a week", 7 * DAY), ("younger", 7 * DAY - SECOND)]:
        add_events(db, kind, age)
    assert stage.run(TASK)["items"] == 1
    assert kinds(db) == ["a week", "younger"]


def test_with_nothing_old_nothing_happens(stage: Stage, db: psycopg.Connection) -> None:
    add_events(db, "new", DAY)
    assert stage.run(TASK)["items"] == 0
    assert kinds(db) == ["new"]


def test_the_retention_is_a_setting(stage: Stage, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORECASTS_RETENTION_SECURITY_EVENTS_DAYS", "1")
    add_events(db, "two days old", 2 * DAY)
    assert stage.run(TASK)["items"] == 1


def test_many_go_page_by_page(stage: Stage, db: psycopg.Connection) -> None:
    for _ in range(3):
        add_events(db, "old", 8 * DAY, 7000)
        add_events(db, "new", DAY, 10)
    assert stage.run(TASK)["items"] == 21_000
    assert set(kinds(db)) == {"new"}
    assert len(kinds(db)) == 30


def test_an_event_that_somebody_holds_is_left_and_not_waited_for(
    stage: Stage, dsn: str, db: psycopg.Connection
) -> None:
    add_events(db, "old", 8 * DAY, 7000)
    add_events(db, "held", 8 * DAY - SECOND)
    add_events(db, "old", 8 * DAY, 7000)
    with psycopg.connect(dsn) as holder:
        holder.execute("SELECT FROM forecasts.security_events WHERE kind = 'held' FOR UPDATE")
        assert stage.run(TASK)["items"] == 14_000
    assert kinds(db) == ["held"]
    assert stage.run(TASK, force=True)["items"] == 1


def test_a_run_for_a_past_day_deletes_what_that_day_would_have(stage: Stage, db: psycopg.Connection) -> None:
    add_events(db, "then", 9 * DAY)
    add_events(db, "since", 8 * DAY)
    stage.run(TASK, reference_time=(NOON - 1.5 * DAY).isoformat())
    assert kinds(db) == ["since"]
