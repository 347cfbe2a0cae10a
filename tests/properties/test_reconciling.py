"""Reconciling finds all slots that are not in the ledger, and no others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signalbox.packs.schedule import Schedule
from signalbox.tasks.reconcile_slots import missing
from signalbox.testing.stage import NOON, Stage

HOURLY = [NOON - timedelta(hours=hours) for hours in range(24)]


@given(
    st.sampled_from(["cron(0/15 * * * ? *)", "cron(3 1/6 * * ? *)", "rate(7 minutes)", "cron(0 6 ? * MON-FRI *)"]),
    st.data(),
)
def test_exactly_the_slots_that_were_removed_are_missing(expression: str, data: st.DataObject) -> None:
    schedule = Schedule.parse(expression)
    expected = list(schedule.between(datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 8, tzinfo=UTC)))
    removed = data.draw(st.sets(st.sampled_from(expected)))
    others = data.draw(st.sets(st.datetimes(timezones=st.just(UTC))))
    assert missing(expected, (set(expected) - removed) | (others - removed)) == sorted(removed)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(removed=st.sets(st.sampled_from(HOURLY[:-1])))
def test_a_ledger_with_any_slots_removed_gets_exactly_those_as_missed(
    stage: Stage, db: psycopg.Connection, removed: set[datetime]
) -> None:
    db.execute("TRUNCATE signalbox.job_history, signalbox.task_schedules")
    db.execute(
        "INSERT INTO signalbox.job_history (job_type, slot, trigger, status, worker_id, started_at, finished_at) "
        "SELECT 'fail_once', slot, 'schedule', 'succeeded', 'tests', slot, slot FROM unnest(%s::timestamptz[]) AS slot",
        (sorted(set(HOURLY) - removed),),
    )
    answer = stage.run("reconcile_slots", NOON + timedelta(minutes=30), force=True)
    query = "SELECT slot FROM signalbox.job_history WHERE status = 'missed' AND job_type = 'fail_once'"
    assert {row[0] for row in db.execute(query).fetchall()} == removed
    assert answer["items"] == len(removed)
