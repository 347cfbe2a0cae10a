"""cleanup_notifications deletes old ones with their deliveries, in batches, and nothing else."""

from __future__ import annotations

from datetime import datetime, timedelta

import psycopg
import pytest

from signalbox.testing.rows import count
from signalbox.testing.stage import NOON, Stage
from tests.support import forecast_rows as rows
from tests.support.at_once import two_at_once

TASK = "cleanup_notifications"
NOTIFICATIONS, DELIVERIES = "forecasts.notifications", "forecasts.notification_deliveries"
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)


def texts(db: psycopg.Connection) -> list[str]:
    statement = "SELECT payload ->> 'text' FROM forecasts.notifications ORDER BY created_at"
    return [text for (text,) in db.execute(statement).fetchall()]


def add_many(db: psycopg.Connection, old: int, new: int, at: datetime = NOON - 100 * DAY) -> None:
    organization = rows.organization(db)
    for number, created_at in [(old, at), (new, NOON)]:
        db.execute(
            "INSERT INTO forecasts.notifications (organization_id, payload, created_at) "
            "SELECT %s, '{}', %s FROM generate_series(1, %s)",
            (organization, created_at, number),
        )
    db.execute(
        "INSERT INTO forecasts.notification_deliveries (notification_id, channel) "
        "SELECT id, channel FROM forecasts.notifications CROSS JOIN unnest(ARRAY['email', 'sms']) AS channel"
    )


def test_notifications_older_than_their_retention_go_to_the_second_with_their_deliveries(
    stage: Stage, db: psycopg.Connection
) -> None:
    organization = rows.organization(db)
    for text, age in [("older", 90 * DAY + SECOND), ("a season", 90 * DAY), ("younger", 90 * DAY - SECOND)]:
        made = rows.notification(db, organization, payload={"text": text}, created_at=NOON - age)
        rows.delivery(db, made)
    assert stage.run(TASK)["items"] == 1
    assert texts(db) == ["a season", "younger"]
    assert count(db, DELIVERIES) == 2


def test_with_nothing_old_nothing_happens(stage: Stage, db: psycopg.Connection) -> None:
    add_many(db, 0, 3)
    assert stage.run(TASK)["items"] == 0
    assert (count(db, NOTIFICATIONS), count(db, DELIVERIES)) == (3, 6)


def test_many_go_in_batches_and_the_rest_in_a_continuation(stage: Stage, db: psycopg.Connection) -> None:
    add_many(db, 2500, 10_000)
    assert stage.run(TASK, seconds=10)["more"] is True  # only the margin
    assert [answer["items"] for answer in stage.deliver()] == [2500]
    assert (count(db, NOTIFICATIONS), count(db, DELIVERIES)) == (10_000, 20_000)


def test_one_that_somebody_holds_is_left_and_not_waited_for(stage: Stage, dsn: str, db: psycopg.Connection) -> None:
    organization = rows.organization(db)
    for text in ("free", "held"):
        rows.notification(db, organization, payload={"text": text}, created_at=NOON - 100 * DAY)
    with psycopg.connect(dsn) as holder:
        holder.execute("SELECT FROM forecasts.notifications WHERE payload ->> 'text' = 'held' FOR UPDATE")
        assert stage.run(TASK)["items"] == 1
    assert texts(db) == ["held"]


def test_two_runs_at_once_delete_each_once(stage: Stage, db: psycopg.Connection) -> None:
    add_many(db, 5000, 25_000, NOON - 200 * DAY)
    answers = two_at_once(stage, TASK, NOON - DAY, NOON)
    assert sum(answer["items"] for answer in answers) == 5000
    assert (count(db, NOTIFICATIONS), count(db, DELIVERIES)) == (25_000, 50_000)


def test_crashed_runs_deletions_stay_and_next_run_deletes_the_rest(stage: Stage, db: psycopg.Connection) -> None:
    add_many(db, 2500, 10_000)
    db.execute(
        "CREATE FUNCTION crash() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'as the test wants it'; END $$; "
        "UPDATE forecasts.notifications SET created_at = created_at + interval '1 h' WHERE ctid = (SELECT max(ctid) "
        f"FROM forecasts.notifications WHERE created_at < '{NOON - DAY}'); "
        "CREATE TRIGGER crash BEFORE DELETE ON forecasts.notifications FOR EACH ROW "
        f"WHEN (OLD.created_at > '{NOON - 100 * DAY}') EXECUTE FUNCTION crash()"
    )
    with pytest.raises(psycopg.errors.RaiseException):
        stage.run(TASK)
    assert count(db, NOTIFICATIONS) == 10_500
    db.execute("DROP TRIGGER crash ON forecasts.notifications")
    assert stage.run(TASK)["items"] == 500
    assert (count(db, NOTIFICATIONS), count(db, DELIVERIES)) == (10_000, 20_000)


def test_a_run_for_a_past_day_deletes_what_that_day_would_have(stage: Stage, db: psycopg.Connection) -> None:
    organization = rows.organization(db)
    for text, age in [("then", 93 * DAY), ("since", 91 * DAY)]:
        rows.notification(db, organization, payload={"text": text}, created_at=NOON - age)
    stage.run(TASK, reference_time=(NOON - 2 * DAY).isoformat())
    assert texts(db) == ["since"]
