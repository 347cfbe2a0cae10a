"""cleanup_archived_watchpoints deletes what was archived long ago, with its notifications, and nothing else."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import psycopg
import pytest

from signalbox.testing.rows import count
from signalbox.testing.stage import NOON, Stage
from tests.support import forecast_rows as rows
from tests.support.at_once import two_at_once

TASK = "cleanup_archived_watchpoints"
NOTIFICATIONS = "forecasts.notifications"
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
LONG_AGO = NOON - 100 * DAY


@pytest.fixture
def organization(db: psycopg.Connection) -> UUID:
    return rows.organization(db)


def archived(db: psycopg.Connection, organization: UUID, name: str, age: timedelta, notifications: int = 1) -> UUID:
    at = NOON - age
    made = rows.watchpoint(db, organization, name=name, status="archived", archived_at=at, archived_reason="passed")
    for _ in range(notifications):
        rows.delivery(db, rows.notification(db, organization, watchpoint_id=made))
    return made


def add_many(db: psycopg.Connection, organization: UUID, old: int, active: int) -> None:
    db.execute(
        "INSERT INTO forecasts.watchpoints (organization_id, name, tile_id, status, archived_at) "
        "SELECT %(org)s, 'old', 'a', 'archived', %(at)s::timestamptz FROM generate_series(1, %(old)s) UNION ALL "
        "SELECT %(org)s, 'active', 'a', 'active', NULL FROM generate_series(1, %(active)s)",
        {"org": organization, "at": LONG_AGO, "old": old, "active": active},
    )
    db.execute(
        "INSERT INTO forecasts.notifications (organization_id, watchpoint_id, payload) "
        "SELECT organization_id, id, '{}' FROM forecasts.watchpoints CROSS JOIN generate_series(1, 2)"
    )


def names(db: psycopg.Connection) -> list[str]:
    return [name for (name,) in db.execute("SELECT name FROM forecasts.watchpoints ORDER BY name").fetchall()]


def test_watchpoints_past_retention_go_exactly_on_time_with_their_notifications(
    stage: Stage, db: psycopg.Connection, organization: UUID
) -> None:
    for name, age in [("a season", 90 * DAY), ("longer", 90 * DAY + SECOND), ("shorter", 90 * DAY - SECOND)]:
        archived(db, organization, name, age, notifications=2)
    rows.notification(db, organization)
    assert stage.run(TASK)["items"] == 1
    assert names(db) == ["a season", "shorter"]
    assert (count(db, NOTIFICATIONS), count(db, "forecasts.notification_deliveries")) == (5, 4)


def test_only_archived_ones_go(stage: Stage, db: psycopg.Connection, organization: UUID) -> None:
    rows.watchpoint(db, organization, name="active", time_window_end=NOON - 400 * DAY)
    rows.watchpoint(db, organization, name="paused", status="paused", paused_at=NOON - 400 * DAY)
    assert stage.run(TASK)["items"] == 0
    assert names(db) == ["active", "paused"]


def test_one_run_deletes_several_pages_and_a_continuation_the_rest(
    stage: Stage, db: psycopg.Connection, organization: UUID
) -> None:
    add_many(db, organization, 1200, 4800)
    assert stage.run(TASK, seconds=10)["more"] is True  # only the margin
    assert [answer["items"] for answer in stage.deliver()] == [1200]
    assert (set(names(db)), count(db, NOTIFICATIONS)) == ({"active"}, 9600)


def test_no_more_go_in_a_run_than_the_setting_says(
    stage: Stage, db: psycopg.Connection, organization: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORECASTS_CLEANUP_WATCHPOINTS_BATCH", "700")
    add_many(db, organization, 1200, 4800)
    answer = stage.run(TASK)
    assert (answer["items"], answer["reason"]) == (700, "a run deletes at most 700; the next run continues")
    answer = stage.run(TASK, NOON + DAY)
    assert (answer["items"], "reason" in answer) == (500, False)


def test_one_that_leaves_the_archive_meanwhile_keeps_all_it_has(
    stage: Stage, dsn: str, db: psycopg.Connection, organization: UUID
) -> None:
    back = archived(db, organization, "back", 100 * DAY)
    archived(db, organization, "gone", 100 * DAY)
    with psycopg.connect(dsn) as holder:
        holder.execute("UPDATE forecasts.watchpoints SET status = 'active', archived_at = NULL WHERE id = %s", (back,))
        assert stage.run(TASK)["items"] == 1  # would otherwise wait for ever
    assert stage.run(TASK, force=True)["items"] == 0
    assert (names(db), count(db, NOTIFICATIONS)) == (["back"], 1)


def test_one_whose_notification_somebody_holds_is_left_to_the_next_run(
    stage: Stage, dsn: str, db: psycopg.Connection, organization: UUID
) -> None:
    held = archived(db, organization, "held", 100 * DAY)
    archived(db, organization, "gone", 100 * DAY)
    with psycopg.connect(dsn) as holder:
        holder.execute("SELECT FROM forecasts.notifications WHERE watchpoint_id = %s FOR UPDATE", (held,))
        assert stage.run(TASK)["items"] == 1
    assert names(db) == ["held"]
    assert stage.run(TASK, NOON + DAY)["items"] == 1


def test_crash_after_notifications_leaves_watchpoints_to_next_run(
    stage: Stage, db: psycopg.Connection, organization: UUID
) -> None:
    archived(db, organization, "gone", 100 * DAY, notifications=3)
    db.execute(
        "CREATE FUNCTION crash() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'as the test wants it'; END $$; "
        "CREATE TRIGGER crash BEFORE DELETE ON forecasts.watchpoints FOR EACH ROW EXECUTE FUNCTION crash()"
    )
    with pytest.raises(psycopg.errors.RaiseException):
        stage.run(TASK)
    assert (names(db), count(db, NOTIFICATIONS)) == (["gone"], 0)
    db.execute("DROP TRIGGER crash ON forecasts.watchpoints")
    assert stage.run(TASK)["items"] == 1
    assert names(db) == []


def test_two_runs_at_once_delete_each_once(stage: Stage, db: psycopg.Connection, organization: UUID) -> None:
    add_many(db, organization, 2000, 8000)
    answers = two_at_once(stage, TASK, NOON - DAY, NOON)
    third = stage.run(TASK, NOON + DAY)  # rows that one left to the other in the meantime
    assert sum(answer["items"] for answer in [*answers, third]) == 2000
    assert (set(names(db)), count(db, NOTIFICATIONS)) == ({"active"}, 16_000)


def test_a_run_for_a_past_day_deletes_what_that_day_would_have(
    stage: Stage, db: psycopg.Connection, organization: UUID
) -> None:
    archived(db, organization, "then", 93 * DAY)
    archived(db, organization, "since", 91 * DAY)
    stage.run(TASK, reference_time=(NOON - 2 * DAY).isoformat())
    assert names(db) == ["since"]
