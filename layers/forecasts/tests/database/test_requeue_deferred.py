"""requeue_deferred sends what quiet hours held back once they have ended, and not into the next ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from forecasts.tasks.requeue_deferred import LONGEST_PAYLOAD, SQL, START
from signalbox.errors import Unavailable
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.stage import NOON, Stage
from tests.support.at_once import two_at_once
from tests.support.aws import Aws
from tests.support.forecast_rows import delivery, notification, organization
from tests.support.lost_session import lose_session

QUARTER, SECOND = timedelta(minutes=15), timedelta(seconds=1)


def deferred(db: psycopg.Connection, until: datetime = NOON - QUARTER, payload: Any = None, **of: Any) -> UUID:
    """Add a delivery that waits until then, for an organisation with the columns `of`."""
    told = notification(db, organization(db, **of), payload={"text": "rain"} if payload is None else payload)
    return delivery(db, told, status="deferred", next_retry_at=until)


def many(db: psycopg.Connection, number: int) -> None:
    owner = organization(db)
    db.execute(
        "WITH told AS (INSERT INTO forecasts.notifications (organization_id, payload) "
        "SELECT %s, jsonb_build_object('number', n) FROM generate_series(1, %s) AS n RETURNING id) "
        "INSERT INTO forecasts.notification_deliveries (notification_id, channel, status, next_retry_at) "
        "SELECT id, 'email', 'deferred', %s FROM told",
        (owner, number, NOON - QUARTER),
    )


def by_status(db: psycopg.Connection) -> dict[str, set[str]]:
    rows = db.execute("SELECT status, array_agg(id::text) FROM forecasts.notification_deliveries GROUP BY 1").fetchall()
    return {status: set(ids) for status, ids in rows}


def waits_until(db: psycopg.Connection, id_: UUID) -> tuple[str, datetime]:
    query = "SELECT status, next_retry_at FROM forecasts.notification_deliveries WHERE id = %s"
    row = db.execute(query, (id_,)).fetchone()
    assert row is not None
    return row[0], row[1]


def test_a_deferred_delivery_goes_out_with_its_stored_notification(
    stage: Stage, db: psycopg.Connection, aws: Aws
) -> None:
    payload = {"text": "Regen über Zürich", "millimetres": 12.5, "tags": ["a", None]}
    told = notification(db, organization(db), payload=payload)
    due = delivery(db, told, status="deferred", next_retry_at=NOON - QUARTER)
    for status in ("pending", "sent", "failed"):
        delivery(db, told, status=status, next_retry_at=NOON - QUARTER)

    assert stage.run("requeue_deferred")["items"] == 1

    assert aws.drain(aws.notifications) == [
        {
            "version": 1,
            "type": "deliver",
            "delivery_id": str(due),
            "notification_id": str(told),
            "payload": payload,
        }
    ]
    assert str(due) in by_status(db)["pending"]


def test_a_second_run_finds_nothing(stage: Stage, db: psycopg.Connection, queue: AwsStandIn) -> None:
    deferred(db)
    assert stage.run("requeue_deferred")["items"] == 1
    answer = stage.run("requeue_deferred", NOON + QUARTER)
    assert (answer["status"], answer["items"], len(queue.bodies)) == ("succeeded", 0, 1)


def test_a_delivery_is_due_from_its_instant_on(stage: Stage, db: psycopg.Connection, queue: AwsStandIn) -> None:
    due = {str(deferred(db, NOON - SECOND)), str(deferred(db, NOON))}
    later = deferred(db, NOON + SECOND)
    stage.run("requeue_deferred")
    assert by_status(db) == {"pending": due, "deferred": {str(later)}}


def test_all_that_is_due_goes_out_page_by_page(stage: Stage, db: psycopg.Connection, queue: AwsStandIn) -> None:
    many(db, 350)
    assert stage.run("requeue_deferred")["items"] == 350
    assert sorted(body["payload"]["number"] for body in queue.bodies) == list(range(1, 351))


def test_page_follows_its_index_however_much_is_due(db: psycopg.Connection) -> None:
    many(db, 5000)
    db.execute(
        "WITH spread AS (UPDATE forecasts.notification_deliveries "
        "SET next_retry_at = next_retry_at - random() * interval '1 hour' RETURNING notification_id) "
        "INSERT INTO forecasts.notification_deliveries (notification_id, channel, status) "
        "SELECT notification_id, 'push', 'sent' FROM spread, generate_series(1, 9)"
    )
    db.execute("ANALYZE forecasts.notification_deliveries")
    values = {"now": NOON, "after_retry": START[0], "after_id": START[1], "size": 1000}
    plan = "\n".join(row[0] for row in db.execute(b"EXPLAIN " + SQL["take"].encode(), values))
    assert "using deliveries_deferred" in plan
    assert "Sort" not in plan


def test_a_run_goes_on_in_a_continuation_when_its_budget_ends(
    stage: Stage, db: psycopg.Connection, queue: AwsStandIn
) -> None:
    many(db, 150)
    assert stage.run("requeue_deferred", seconds=10.0)["more"] is True
    assert [answer["items"] for answer in stage.deliver()] == [150]


@pytest.mark.parametrize("payload", [["no", "object"], {"text": "x" * LONGEST_PAYLOAD}])
def test_a_notification_that_makes_no_message_stays_and_holds_up_nobody(
    stage: Stage,
    db: psycopg.Connection,
    queue: AwsStandIn,
    payload: Any,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    since = NOON - 3 * QUARTER
    bad = deferred(db, since, payload)
    good = {str(deferred(db, NOON - 5 * QUARTER)), str(deferred(db))}
    assert stage.run("requeue_deferred")["items"] == 2
    assert {body["delivery_id"] for body in queue.bodies} == good
    assert waits_until(db, bad) == ("deferred", since)
    told = [vars(record) for record in caplog.records if record.message == "deliveries.left"]
    assert [record["delivery_ids"] for record in told] == [[str(bad)]]
    assert '"DeliveriesUnreadable":[1.0]' in capsys.readouterr().out


def test_messages_too_large_for_one_call_go_in_several(stage: Stage, db: psycopg.Connection, queue: AwsStandIn) -> None:
    for _ in range(9):
        deferred(db, payload={"text": "x" * (LONGEST_PAYLOAD - 100)})
    assert stage.run("requeue_deferred")["items"] == 9
    assert queue.calls == 3


def test_a_queue_that_refuses_leaves_all_deferred_for_the_next_run(
    stage: Stage, db: psycopg.Connection, queue: AwsStandIn
) -> None:
    many(db, 25)
    queue.takes = 10
    with pytest.raises(Unavailable, match="does not accept messages"):
        stage.run("requeue_deferred")
    assert set(by_status(db)) == {"deferred"}

    queue.takes = None
    assert stage.run("requeue_deferred")["items"] == 25
    assert {body["delivery_id"] for body in queue.bodies} == by_status(db)["pending"]


def test_a_crash_after_the_messages_and_before_the_commit_sends_them_again(
    stage: Stage, db: psycopg.Connection, queue: AwsStandIn, dsn: str
) -> None:
    many(db, 5)

    def crash() -> None:
        queue.taken = lambda: None
        lose_session(dsn)

    queue.taken = crash
    with pytest.raises(psycopg.OperationalError):
        stage.run("requeue_deferred")
    assert set(by_status(db)) == {"deferred"}

    assert stage.run("requeue_deferred")["items"] == 5
    assert len(queue.bodies) == 10
    assert {body["delivery_id"] for body in queue.bodies} == by_status(db)["pending"]


def test_two_runs_at_once_send_each_delivery_once(stage: Stage, db: psycopg.Connection, queue: AwsStandIn) -> None:
    many(db, 450)
    answers = two_at_once(stage, "requeue_deferred", NOON, NOON + QUARTER)
    assert [answer["status"] for answer in answers] == ["succeeded"] * 2
    assert sum(answer["items"] for answer in answers) == len(queue.bodies) == 450
    assert {body["delivery_id"] for body in queue.bodies} == by_status(db)["pending"]


def test_a_past_run_sends_what_was_due_then(stage: Stage, db: psycopg.Connection, queue: AwsStandIn) -> None:
    then = NOON - timedelta(days=3)
    due, later = deferred(db, then), deferred(db, then + SECOND)
    stage.run("requeue_deferred", reference_time=then.isoformat())
    assert by_status(db) == {"pending": {str(due)}, "deferred": {str(later)}}


def test_a_late_run_sends_nothing_into_the_next_quiet_hours(
    stage: Stage, db: psycopg.Connection, queue: AwsStandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    """The archiver was away all day: at 23:30 in Berlin the quiet hours that ended at seven have begun again."""
    wishes = {"quiet_hours": {"start": "22:00", "end": "07:00"}}
    berlin = deferred(
        db, datetime(2026, 3, 10, 6, tzinfo=UTC), timezone="Europe/Berlin", notification_preferences=wishes
    )
    lisbon = deferred(
        db, datetime(2026, 3, 10, 7, tzinfo=UTC), timezone="Atlantic/Azores", notification_preferences=wishes
    )
    late = datetime(2026, 3, 10, 22, 30, tzinfo=UTC)
    assert stage.run("requeue_deferred", late)["items"] == 1
    assert [body["delivery_id"] for body in queue.bodies] == [str(lisbon)]
    seven = datetime(2026, 3, 11, 6, tzinfo=UTC)
    assert waits_until(db, berlin) == ("deferred", seven)
    assert "DeliveriesDeferredAgain" in capsys.readouterr().out

    assert stage.run("requeue_deferred", seven)["items"] == 1


@pytest.mark.parametrize(
    ("now", "sent"),
    [
        (datetime(2026, 3, 29, 0, 59, 59, tzinfo=UTC), 0),  # 01:59:59
        (datetime(2026, 3, 29, 1, 0, 0, tzinfo=UTC), 1),  # 03:00:00
    ],
)
def test_quiet_hours_ending_in_a_gap_end_when_the_clock_jumps(
    stage: Stage, db: psycopg.Connection, queue: AwsStandIn, now: datetime, sent: int
) -> None:
    wishes = {"quiet_hours": {"start": "22:00", "end": "02:30"}}
    due = deferred(db, now - timedelta(hours=3), timezone="Europe/Berlin", notification_preferences=wishes)
    assert stage.run("requeue_deferred", now)["items"] == sent
    if not sent:
        assert waits_until(db, due) == ("deferred", datetime(2026, 3, 29, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    "of",
    [
        {"timezone": "Mars/Olympus", "notification_preferences": {"quiet_hours": {"start": "00:00", "end": "23:59"}}},
        {"notification_preferences": {"quiet_hours": {"start": "late", "end": "07:00"}}},
        {"notification_preferences": {"quiet_hours": "always"}},
        {"notification_preferences": ["no", "object"]},
        {"timezone": "Mars/Olympus"},
    ],
)
def test_wishes_that_cannot_be_read_hold_nothing_back(
    stage: Stage, db: psycopg.Connection, queue: AwsStandIn, of: dict[str, Any]
) -> None:
    deferred(db, **of)
    deferred(db)
    assert stage.run("requeue_deferred")["items"] == 2
