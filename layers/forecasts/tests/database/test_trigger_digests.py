"""trigger_digests sends due digests, and plans the next by the organisation's own calendar."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from signalbox.errors import Unavailable
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.stage import NOON, Stage
from tests.support.at_once import two_at_once
from tests.support.aws import Aws
from tests.support.forecast_rows import organization, plan
from tests.support.lost_session import lose_session

HOUR, DAY, SECOND = timedelta(hours=1), timedelta(days=1), timedelta(seconds=1)


def daily(clock: str = "08:00", **more: Any) -> dict[str, Any]:
    return {"digest": {"enabled": True, "schedule": "daily", "time": clock} | more}


def due(db: psycopg.Connection, at: datetime | None = NOON - HOUR, wishes: Any = None, **columns: Any) -> UUID:
    """Add an organisation whose digest is due then."""
    wishes = daily() if wishes is None else wishes
    return organization(db, next_digest_at=at, notification_preferences=wishes, **columns)


def planned(db: psycopg.Connection) -> dict[UUID, datetime | None]:
    return dict(db.execute("SELECT id, next_digest_at FROM forecasts.organizations").fetchall())


def many(db: psycopg.Connection, number: int) -> None:
    db.execute(
        "INSERT INTO forecasts.organizations (name, plan, next_digest_at, notification_preferences) "
        """SELECT 'org-' || n, %s, %s, '{"digest": {"enabled": true, "schedule": "daily", "time": "08:00"}}' """
        "FROM generate_series(1, %s) AS n",
        (plan(db), NOON - HOUR, number),
    )


def test_due_digest_is_requested_and_the_next_one_planned(stage: Stage, db: psycopg.Connection, aws: Aws) -> None:
    tokyo = due(db, NOON - HOUR, daily("20:00"), timezone="Asia/Tokyo")
    later = due(db, NOON + HOUR)
    never = due(db, None)
    gone = due(db, NOON - HOUR, deleted_at=NOON - DAY)

    assert stage.run("trigger_digests")["items"] == 1

    assert aws.drain(aws.notifications) == [
        {
            "version": 1,
            "type": "generate_digest",
            "organization_id": str(tokyo),
            "due_at": "2026-03-10T11:00:00Z",
        }
    ]
    assert planned(db) == {tokyo: NOON - HOUR + DAY, later: NOON + HOUR, never: None, gone: NOON - HOUR}


def test_the_worker_and_not_this_task_says_when_a_digest_was_generated(
    stage: Stage, db: psycopg.Connection, queue: AwsStandIn
) -> None:
    due(db, last_digest_generated_at=NOON - DAY)
    stage.run("trigger_digests")
    assert db.execute("SELECT last_digest_generated_at FROM forecasts.organizations").fetchall() == [(NOON - DAY,)]


def test_where_nobody_is_due_nothing_is_asked(stage: Stage, db: psycopg.Connection, queue: AwsStandIn) -> None:
    due(db, NOON + HOUR)
    answer = stage.run("trigger_digests")
    assert (answer["status"], answer["items"], queue.calls) == ("succeeded", 0, 0)


def test_a_digest_is_due_from_its_instant_on(stage: Stage, db: psycopg.Connection, queue: AwsStandIn) -> None:
    before, at, after = (due(db, NOON + n * SECOND) for n in (-1, 0, 1))
    stage.run("trigger_digests")
    assert {body["organization_id"] for body in queue.bodies} == {str(before), str(at)}
    assert planned(db)[after] == NOON + SECOND


def test_three_days_of_missed_digests_become_one(stage: Stage, db: psycopg.Connection, queue: AwsStandIn) -> None:
    missed = datetime(2026, 3, 7, 8, tzinfo=UTC)
    late = due(db, missed)
    stage.run("trigger_digests")
    assert [body["due_at"] for body in queue.bodies] == ["2026-03-07T08:00:00Z"]
    assert planned(db)[late] == datetime(2026, 3, 11, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "now", "following"),
    [
        # New York changes on the 8th of March at 2:00, and back on the 1st of November.
        ("America/New_York", "2026-03-07T13:00+00:00", "2026-03-08T12:00+00:00"),
        ("America/New_York", "2026-10-31T12:00+00:00", "2026-11-01T13:00+00:00"),
        # Berlin changes on the 29th of March and back on the 25th of October.
        ("Europe/Berlin", "2026-03-28T07:00+00:00", "2026-03-29T06:00+00:00"),
        ("Europe/Berlin", "2026-10-24T06:00+00:00", "2026-10-25T07:00+00:00"),
    ],
)
def test_digests_keep_their_local_time_across_clock_changes(
    stage: Stage, db: psycopg.Connection, queue: AwsStandIn, zone: str, now: str, following: str
) -> None:
    then = datetime.fromisoformat(now)
    one = due(db, then, timezone=zone)
    stage.run("trigger_digests", then)
    assert planned(db)[one] == datetime.fromisoformat(following)


def test_a_weekly_digest_comes_on_its_day(stage: Stage, db: psycopg.Connection, queue: AwsStandIn) -> None:
    """NOON is a Tuesday."""
    friday = due(db, wishes=daily(schedule="weekly", weekday=4))
    tuesday = due(db, wishes=daily(schedule="weekly", weekday=1))
    stage.run("trigger_digests")
    assert planned(db)[friday] == datetime(2026, 3, 13, 8, tzinfo=UTC)
    assert planned(db)[tuesday] == datetime(2026, 3, 17, 8, tzinfo=UTC)


def test_a_digest_that_is_switched_off_is_planned_and_not_sent(
    stage: Stage, db: psycopg.Connection, queue: AwsStandIn
) -> None:
    off = daily()
    off["digest"]["enabled"] = False
    one = due(db, wishes=off)
    assert stage.run("trigger_digests")["items"] == 0
    assert planned(db)[one] == datetime(2026, 3, 11, 8, tzinfo=UTC)
    assert not queue.bodies


def test_a_digest_comes_again_once_the_preferences_switch_it_on(
    stage: Stage, db: psycopg.Connection, queue: AwsStandIn
) -> None:
    one = due(db, wishes={"digest": {"enabled": False}})
    stage.run("trigger_digests")
    db.execute("UPDATE forecasts.organizations SET notification_preferences = %s", (Jsonb(daily()),))
    assert stage.run("trigger_digests", NOON + DAY)["items"] == 1
    assert planned(db)[one] == datetime(2026, 3, 12, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    "columns",
    [
        {"wishes": {"digest": {"enabled": False}}},
        {"wishes": {"digest": {"enabled": False, "schedule": "weekly", "time": "08:00"}}},
        {"wishes": {"digest": {"enabled": False}}, "timezone": "Mars/Olympus"},
    ],
)
def test_switched_off_digest_with_unreadable_time_is_checked_a_day_later(
    stage: Stage, db: psycopg.Connection, queue: AwsStandIn, columns: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    off = due(db, **columns)
    assert stage.run("trigger_digests")["items"] == 0
    assert planned(db)[off] == NOON + DAY
    assert "digest.skipped" not in caplog.messages


@pytest.mark.parametrize(
    "columns",
    [
        {"timezone": "Mars/Olympus"},
        {"timezone": "America"},  # a folder of the time zone database
        {"timezone": "../etc/passwd"},
        {"timezone": ""},
        {"wishes": {}},
        {"wishes": ["digest"]},
        {"wishes": {"digest": None}},
        {"wishes": {"digest": "daily"}},
        {"wishes": {"digest": {}}},
        {"wishes": {"digest": {"enabled": "yes"}}},
        {"wishes": {"digest": {"enabled": True}}},
        {"wishes": daily("8 o'clock")},
        {"wishes": daily("24:00")},
        {"wishes": daily(schedule="hourly")},
        {"wishes": daily(schedule="weekly")},
        {"wishes": daily(schedule="weekly", weekday=7)},
    ],
)
def test_wishes_that_cannot_be_read_skip_their_organisation_and_nobody_else(
    stage: Stage,
    db: psycopg.Connection,
    queue: AwsStandIn,
    columns: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    bad = due(db, NOON - 2 * HOUR, **columns)
    good = {due(db, NOON - 3 * HOUR), due(db)}
    assert stage.run("trigger_digests")["items"] == 2
    assert {body["organization_id"] for body in queue.bodies} == {str(id_) for id_ in good}
    assert planned(db)[bad] == NOON - 2 * HOUR
    told = [vars(record) for record in caplog.records if record.message == "digest.skipped"]
    assert [(record["organization_id"], len(record["reason"]) > 20) for record in told] == [(str(bad), True)]
    assert '"DigestsSkipped":[1.0]' in capsys.readouterr().out


def test_many_hopeless_rows_at_the_queues_head_hold_up_nobody(
    stage: Stage, db: psycopg.Connection, queue: AwsStandIn
) -> None:
    many(db, 250)
    db.execute("UPDATE forecasts.organizations SET timezone = 'Mars/Olympus', next_digest_at = %s", (NOON - DAY,))
    good = due(db)
    assert stage.run("trigger_digests")["items"] == 1
    assert [body["organization_id"] for body in queue.bodies] == [str(good)]


def test_a_queue_that_refuses_leaves_all_due_for_the_next_run(
    stage: Stage, db: psycopg.Connection, queue: AwsStandIn
) -> None:
    many(db, 25)
    queue.takes = 10
    with pytest.raises(Unavailable, match="does not accept messages"):
        stage.run("trigger_digests")
    assert set(planned(db).values()) == {NOON - HOUR}

    queue.takes = None
    assert stage.run("trigger_digests", NOON + HOUR)["items"] == 25
    told = {(body["organization_id"], body["due_at"]) for body in queue.bodies}
    assert len(told) == 25  # a digest that was sent twice is still the same digest


def test_a_crash_after_the_messages_and_before_the_commit_asks_again(
    stage: Stage, db: psycopg.Connection, queue: AwsStandIn, dsn: str
) -> None:
    many(db, 5)

    def crash() -> None:
        queue.taken = lambda: None
        lose_session(dsn)

    queue.taken = crash
    with pytest.raises(psycopg.OperationalError):
        stage.run("trigger_digests")
    assert set(planned(db).values()) == {NOON - HOUR}
    assert stage.run("trigger_digests")["items"] == 5
    assert len({body["organization_id"] for body in queue.bodies}) == 5


def test_two_runs_at_once_ask_for_each_digest_once(stage: Stage, db: psycopg.Connection, queue: AwsStandIn) -> None:
    many(db, 450)
    answers = two_at_once(stage, "trigger_digests", NOON, NOON + HOUR)
    assert [answer["status"] for answer in answers] == ["succeeded"] * 2
    assert sum(answer["items"] for answer in answers) == len(queue.bodies) == 450
    assert len({body["organization_id"] for body in queue.bodies}) == 450


def test_past_run_requests_what_was_due_then_and_plans_from_then(
    stage: Stage, db: psycopg.Connection, queue: AwsStandIn
) -> None:
    then = datetime(2026, 3, 3, 8, tzinfo=UTC)
    early, late = due(db, then), due(db, then + HOUR)
    stage.run("trigger_digests", reference_time=then.isoformat())
    assert planned(db) == {early: then + DAY, late: then + HOUR}


def test_a_run_goes_on_in_a_continuation_when_its_budget_ends(
    stage: Stage, db: psycopg.Connection, queue: AwsStandIn
) -> None:
    many(db, 150)
    assert stage.run("trigger_digests", seconds=10.0)["more"] is True
    assert [answer["items"] for answer in stage.deliver()] == [150]
