"""Missed slots are found, recorded once, and caught up by each task's policy."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from signalbox.errors import ParamsRefused
from signalbox.testing.rows import abandoned_run, count, failed_run, missed_slot, runs_of, succeeded_run
from signalbox.testing.stage import NOON, Stage

HOUR = timedelta(hours=1)
pytestmark = pytest.mark.usefixtures("effects")


def reconcile(stage: Stage, at: datetime = NOON + timedelta(minutes=30), **fields: Any) -> dict[str, Any]:
    return stage.run("reconcile_slots", at, force=True, **fields)


def missed(db: psycopg.Connection, task: str) -> list[datetime]:
    return [row["slot"] for row in runs_of(db, task) if row["status"] == "missed"]


def test_a_slot_without_any_row_is_recorded_as_missed_once(stage: Stage, db: psycopg.Connection) -> None:
    for hours in (5, 3, 1, 0):
        succeeded_run(db, "fail_once", NOON - hours * HOUR)

    first, second = reconcile(stage), reconcile(stage)

    assert missed(db, "fail_once") == [NOON - 4 * HOUR, NOON - 2 * HOUR]
    assert first["items"] == 2
    assert second["items"] == 0


def test_a_run_that_failed_or_is_at_work_was_not_missed(stage: Stage, db: psycopg.Connection) -> None:
    succeeded_run(db, "fail_once", NOON - 2 * HOUR)
    failed_run(db, "fail_once", NOON - HOUR)
    abandoned_run(db, "fail_once", NOON, lease=HOUR)
    reconcile(stage)
    assert missed(db, "fail_once") == []


def test_a_slot_is_late_before_it_is_missed(stage: Stage, db: psycopg.Connection) -> None:
    succeeded_run(db, "fail_once", NOON - HOUR)
    reconcile(stage, NOON + timedelta(minutes=9))
    assert missed(db, "fail_once") == []
    reconcile(stage, NOON + timedelta(minutes=10))
    assert missed(db, "fail_once") == [NOON]


def test_nothing_was_missed_before_a_task_had_its_schedule(stage: Stage, db: psycopg.Connection) -> None:
    reconcile(stage)
    assert count(db, "signalbox.job_history WHERE status = 'missed'") == 0
    known_since(db, NOON + timedelta(minutes=30))
    reconcile(stage, NOON + 3 * HOUR)
    assert missed(db, "fail_once") == [NOON + HOUR, NOON + 2 * HOUR]


def test_changed_schedule_starts_over(stage: Stage, db: psycopg.Connection) -> None:
    reconcile(stage, NOON)
    succeeded_run(db, "fail_once", NOON + timedelta(minutes=20))
    db.execute("UPDATE signalbox.task_schedules SET schedule = 'cron(20 * * * ? *)' WHERE task = 'fail_once'")
    reconcile(stage, NOON + 5 * HOUR)
    known_since(db, NOON + 5 * HOUR + timedelta(minutes=1))
    reconcile(stage, NOON + 7 * HOUR + timedelta(minutes=30))
    assert missed(db, "fail_once") == [NOON + 6 * HOUR, NOON + 7 * HOUR]


def test_reconciling_for_a_past_instant_does_not_make_all_since_then_missed(
    stage: Stage, db: psycopg.Connection
) -> None:
    reconcile(stage, datetime.now(UTC), reference_time=(NOON - 24 * HOUR).isoformat())
    reconcile(stage, datetime.now(UTC))
    assert count(db, "signalbox.job_history WHERE status = 'missed'") == 0


def test_a_refused_request_does_not_stand_for_a_run(stage: Stage, db: psycopg.Connection) -> None:
    succeeded_run(db, "fail_once", NOON - HOUR)
    with pytest.raises(ParamsRefused):
        stage.run("fail_once", NOON, params={"x": 1})
    reconcile(stage)
    assert missed(db, "fail_once") == [NOON]


def test_a_slot_whose_retry_met_another_slot_at_work_is_caught_up(stage: Stage, db: psycopg.Connection) -> None:
    failed_run(db, "catch_alone", NOON)
    abandoned_run(db, "catch_alone", NOON + HOUR, lease=HOUR, whole_task=True)
    assert stage.run("catch_alone", scheduled_time=NOON.isoformat())["status"] == "missed"
    db.execute("DELETE FROM signalbox.job_locks")
    reconcile(stage)
    assert [payload["task"] for payload in stage.aws.payloads] == ["catch_alone"]


def known_since(db: psycopg.Connection, instant: datetime) -> None:
    """Date the stack's first deploy to that instant."""
    db.execute("UPDATE signalbox.task_schedules SET known_since = %s", (instant,))


def test_manual_run_of_an_old_slot_makes_no_later_slot_missed(stage: Stage, db: psycopg.Connection) -> None:
    succeeded_run(db, "fail_once", NOON - 9 * HOUR, trigger="manual")
    reconcile(stage)
    assert missed(db, "fail_once") == []


def test_all_missed_slots_are_caught_up_oldest_first(stage: Stage, db: psycopg.Connection) -> None:
    succeeded_run(db, "catch_all", NOON - 4 * HOUR)
    succeeded_run(db, "catch_all", NOON)

    reconcile(stage)
    answers = stage.deliver(NOON + HOUR)

    assert [answer["slot"] for answer in answers] == [(NOON - n * HOUR).isoformat() for n in (3, 2, 1)]
    caught_up = [row for row in runs_of(db, "catch_all") if row["trigger"] == "catch_up"]
    assert [row["status"] for row in caught_up] == ["succeeded"] * 3
    assert [row["reference_time"] for row in caught_up] == [NOON - n * HOUR for n in (3, 2, 1)]
    reconcile(stage)
    assert stage.deliver() == []


def test_of_the_latest_only_the_newest_missed_slot_runs(stage: Stage, db: psycopg.Connection) -> None:
    succeeded_run(db, "catch_latest", NOON - 4 * HOUR)
    reconcile(stage)
    assert [answer["slot"] for answer in stage.deliver(NOON + HOUR)] == [NOON.isoformat()]


def test_of_the_latest_none_runs_once_a_later_slot_has(stage: Stage, db: psycopg.Connection) -> None:
    succeeded_run(db, "catch_latest", NOON - 4 * HOUR)
    succeeded_run(db, "catch_latest", NOON)
    reconcile(stage)
    assert len(missed(db, "catch_latest")) == 3
    assert stage.deliver() == []


def test_where_the_policy_is_to_skip_nothing_runs(stage: Stage, db: psycopg.Connection) -> None:
    succeeded_run(db, "fail_once", NOON - 4 * HOUR)
    reconcile(stage)
    assert len(missed(db, "fail_once")) == 4
    assert stage.deliver() == []


def test_slot_missed_longer_than_its_task_allows_is_recorded_without_a_run(
    stage: Stage, db: psycopg.Connection
) -> None:
    succeeded_run(db, "catch_all", NOON - 27 * HOUR)
    reconcile(stage)
    assert len(missed(db, "catch_all")) == 27
    assert len(stage.aws.invoked) == 24


def test_a_catch_up_that_lambda_did_not_take_is_asked_for_again(stage: Stage, db: psycopg.Connection) -> None:
    succeeded_run(db, "catch_all", NOON - 2 * HOUR)
    stage.aws.away.add("lambda")
    with pytest.raises(Exception, match="could not be sent to signalbox-archiver"):
        reconcile(stage)
    assert len(missed(db, "catch_all")) == 2
    stage.aws.away.discard("lambda")
    reconcile(stage)
    assert len(stage.deliver()) == 2


def test_a_slot_that_could_not_overlap_runs_once_the_task_is_free(stage: Stage, db: psycopg.Connection) -> None:
    missed_slot(db, "catch_all", NOON - HOUR)
    succeeded_run(db, "catch_all", NOON)
    reconcile(stage)
    assert [answer["status"] for answer in stage.deliver(NOON)] == ["succeeded"]


def test_slots_of_a_disabled_task_are_not_missed_after_it_is_enabled(stage: Stage, db: psycopg.Connection) -> None:
    succeeded_run(db, "catch_all", NOON - 3 * HOUR)
    other = stage.another(disabled_tasks="catch_all")
    for age in (2, 1, 0):
        other.run("catch_all", NOON, scheduled_time=(NOON - age * HOUR).isoformat())
    reconcile(stage)
    assert missed(db, "catch_all") == []


def test_a_task_that_is_disabled_misses_nothing(stage: Stage, db: psycopg.Connection) -> None:
    succeeded_run(db, "reconcile_slots", NOON - 4 * HOUR)
    other = stage.another(disabled_tasks="sweep_runs,catch_all")
    succeeded_run(db, "catch_all", NOON - 4 * HOUR)
    reconcile(other)
    assert missed(db, "catch_all") == []
