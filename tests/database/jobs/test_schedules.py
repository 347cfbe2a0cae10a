"""Schedules are checked when made, kept by name, and paused, resumed and deleted on record."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from signalbox.errors import JobRefused, JobTypeUnknown, ScheduleRefused, ScheduleUnknown
from signalbox.job_schedules.schedule import JobSchedule
from signalbox.job_schedules.store import (
    NewSchedule,
    create_schedule,
    delete_schedule,
    list_schedules,
    pause_schedule,
    resume_schedule,
    show_schedule,
    shown,
)
from signalbox.operate.audit import Actor
from signalbox.testing.rows import count
from tests.support.jobs import REGISTRY

NOON = datetime(2026, 3, 10, 12, 0, 30, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
ANNA = Actor("anna", "the quarter ends")
NIGHTLY = NewSchedule(name="nightly", job_type="do_nothing", cron="30 2 * * *", timezone="Europe/Berlin")


def create(db: psycopg.Connection, new: NewSchedule = NIGHTLY, *, now: datetime = NOON, **changed: Any) -> JobSchedule:
    replacing = bool(changed.pop("replacing", False))
    if "every" in changed:
        changed["every_seconds"] = changed.pop("every").total_seconds()
    altered = new.model_copy(update=changed)  # without the checks of the operation
    return create_schedule(db, REGISTRY, altered, by=ANNA, now=now, replacing=replacing)


def test_a_schedule_is_stored_as_it_was_made_with_its_next_instant(db: psycopg.Connection) -> None:
    made = create(
        db, payload={"number": 7}, tenant="acme", options={"priority": 2, "tags": ["a"], "timeout_seconds": 1.5},
        max_runs=3, expires_at=NOON + 30 * DAY, metadata={"x": 1}, catch_up="all",
    )  # fmt: skip
    found = show_schedule(db, "nightly")
    assert found == made == show_schedule(db, made.id)
    assert found.next_run_at == datetime(2026, 3, 11, 1, 30, tzinfo=UTC)
    assert (found.created_by, found.status, found.options["priority"]) == ("anna", "active", 2)
    assert shown(found)["next_run_at"] == "2026-03-11T01:30:00+00:00"


@pytest.mark.parametrize(
    ("timing", "first"),
    [
        ({"cron": "0 * * * *"}, datetime(2026, 3, 10, 13, tzinfo=UTC)),
        ({"every": 2 * HOUR}, NOON + 2 * HOUR),
        ({"every": 2 * HOUR, "starts_at": NOON - HOUR}, NOON + HOUR),
        ({"every": 2 * HOUR, "starts_at": NOON + DAY}, NOON + DAY),
        ({"cron": "0 * * * *", "starts_at": NOON.replace(hour=15, second=0)}, datetime(2026, 3, 10, 15, tzinfo=UTC)),
        ({"at": NOON + HOUR}, NOON + HOUR),
    ],
)
def test_the_first_instant(db: psycopg.Connection, timing: dict[str, Any], first: datetime) -> None:
    assert create(db, **({"cron": None} | timing)).next_run_at == first


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"cron": None}, "give one of cron, every and at"),
        ({"at": NOON + HOUR}, "give one of cron, every and at"),
        ({"cron": "* * * *"}, "does not have five fields"),
        ({"cron": "61 * * * *"}, "can't be read: Bad minute"),
        ({"cron": "0 0 31 2 *"}, "can't be read"),
        ({"timezone": "Mars/Base"}, "time zone 'Mars/Base' is not known"),
        ({"timezone": "../etc"}, "is not known"),
        ({"cron": None, "at": NOON}, "would never run"),
        ({"cron": None, "at": NOON.replace(tzinfo=None)}, "has no time zone"),
        ({"expires_at": NOON}, "would never run"),
        ({"starts_at": NOON + DAY, "expires_at": NOON + HOUR}, "would expire before it starts"),
        ({"cron": None, "every": timedelta(seconds=59)}, "each minute"),
        ({"cron": None, "every": timedelta(0), "catch_up": "all"}, "at least one second"),
        ({"cron": None, "every": timedelta(days=9999)}, "at most 3660 days"),
        ({"max_runs": 0}, "max_runs must be at least 1"),
        ({"catch_up": "some"}, "not one of all, latest and skip"),
        ({"name": " "}, "printable characters"),
        ({"name": "a\0"}, "printable characters"),
        ({"name": "0190a1b2-0000-7000-8000-000000000000"}, "looks like an id"),
        ({"options": {"prio": 1}}, "field 'prio' is not known; did you mean 'priority'"),
        ({"options": {"timeout_seconds": 0}}, "field 'timeout_seconds'"),
        ({"metadata": {"x": "\0"}}, "NUL character"),
        ({"payload": {"x": float("nan")}}, "must be JSON"),
    ],
)
def test_what_can_not_be_run_is_refused(db: psycopg.Connection, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ScheduleRefused, match=said):
        create(db, **changed)
    assert count(db, "signalbox.job_schedules") == count(db, "signalbox.audit_log") == 0


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"payload": {"numer": 1}}, "schedule 'nightly': payload of job type 'do_nothing' refused: .*'number'"),
        ({"options": {"priority": 11}}, "schedule 'nightly': .*priority 11"),
        ({"options": {"lane": "heavy"}}, "may not run in lane 'heavy'"),
        ({"options": {"timeout_seconds": 9999}}, "time-out"),
    ],
)
def test_what_its_jobs_would_be_refused_for_is_refused_now(
    db: psycopg.Connection, changed: dict[str, Any], said: str
) -> None:
    with pytest.raises(JobRefused, match=said):
        create(db, **changed)
    with pytest.raises(JobTypeUnknown, match="did you mean 'do_nothing'"):
        create(db, job_type="do_nothin")
    assert count(db, "signalbox.job_schedules") == 0


def test_an_interval_below_a_minute_is_taken_where_all_of_it_is_wanted(db: psycopg.Connection) -> None:
    assert create(db, cron=None, every=timedelta(seconds=10), catch_up="all").interval_ms == 10_000


def test_a_name_is_taken_once_unless_it_is_to_be_replaced(db: psycopg.Connection) -> None:
    first = create(db)
    with pytest.raises(ScheduleRefused, match="there is a schedule 'nightly' already"):
        create(db)
    second = create(db, replacing=True, payload={"number": 2}, now=NOON + HOUR)
    assert (second.id, second.created_at, second.payload_template) == (first.id, NOON, {"number": 2})


def test_replaced_schedule_keeps_its_next_instant_counts_and_pause(db: psycopg.Connection) -> None:
    due = create(db).next_run_at
    db.execute("UPDATE signalbox.job_schedules SET run_count = 7, missed_count = 2, error = 'once'")
    again = create(db, replacing=True, now=NOON + DAY)
    assert (again.next_run_at, again.run_count, again.missed_count, again.error) == (due, 7, 2, None)
    moved = create(db, replacing=True, now=NOON + DAY, cron="0 5 * * *")
    assert moved.next_run_at == datetime(2026, 3, 12, 4, tzinfo=UTC)
    pause_schedule(db, "nightly", by=ANNA, now=NOON)
    assert create(db, replacing=True).status == "paused"


def test_one_that_has_happened_is_applied_again_without_happening_again(db: psycopg.Connection) -> None:
    once: dict[str, Any] = {"cron": None, "at": NOON + HOUR}
    create(db, **once)
    db.execute("UPDATE signalbox.job_schedules SET run_count = 1, next_run_at = NULL")
    again = create(db, replacing=True, now=NOON + DAY, **once)
    assert (again.next_run_at, again.status) == (None, "finished")


def test_limit_below_run_count_is_refused_and_a_higher_one_continues(db: psycopg.Connection) -> None:
    create(db, max_runs=7)
    db.execute("UPDATE signalbox.job_schedules SET run_count = 7, next_run_at = NULL")
    with pytest.raises(ScheduleRefused, match="has run 7 times"):
        create(db, max_runs=6, replacing=True)
    assert create(db, max_runs=8, replacing=True).next_run_at == datetime(2026, 3, 11, 1, 30, tzinfo=UTC)


def test_pause_removes_the_next_instant_and_resume_skips_missed_ones(db: psycopg.Connection) -> None:
    create(db)
    paused = pause_schedule(db, "nightly", by=ANNA, now=NOON)
    assert paused == show_schedule(db, "nightly")
    assert (paused.status, paused.next_run_at, paused.paused_reason) == ("paused", None, "the quarter ends")
    resumed = resume_schedule(db, "nightly", by=ANNA, now=NOON + 3 * DAY)
    assert resumed == show_schedule(db, "nightly")
    assert (resumed.status, resumed.next_run_at) == ("active", datetime(2026, 3, 14, 1, 30, tzinfo=UTC))
    assert (resumed.paused_by, resumed.paused_reason) == (None, None)
    assert resume_schedule(db, "nightly", by=ANNA, now=NOON + 9 * DAY) == resumed


def test_second_pause_of_a_schedule_replaces_author_time_and_reason(db: psycopg.Connection) -> None:
    create(db)
    pause_schedule(db, "nightly", by=ANNA, now=NOON)
    pause_schedule(db, "nightly", by=Actor("jo", "audit"), now=NOON + HOUR)
    found = show_schedule(db, "nightly")
    assert (found.paused_by, found.paused_at, found.paused_reason) == ("jo", NOON + HOUR, "audit")
    assert create(db, max_runs=7, replacing=True).paused_by == "jo"


@pytest.mark.parametrize(("catch_up", "due"), [("latest", NOON + HOUR), ("all", NOON + HOUR), ("skip", None)])
def test_single_run_due_during_a_pause_follows_it_unless_skipped(
    db: psycopg.Connection, catch_up: str, due: datetime | None
) -> None:
    create(db, cron=None, at=NOON + HOUR, catch_up=catch_up)
    pause_schedule(db, "nightly", by=ANNA, now=NOON)
    assert resume_schedule(db, "nightly", by=ANNA, now=NOON + DAY).next_run_at == due


def test_what_is_deleted_is_gone(db: psycopg.Connection) -> None:
    made = create(db)
    assert delete_schedule(db, "nightly", by=ANNA) == made
    for order in (show_schedule, lambda db, name: delete_schedule(db, name, by=ANNA)):
        with pytest.raises(ScheduleUnknown, match="there is no schedule 'nightly'"):
            order(db, "nightly")
    assert create(db).id != made.id


def test_each_order_is_in_the_audit_log_with_who_and_why(db: psycopg.Connection) -> None:
    made = create(db)
    create(db, replacing=True)
    pause_schedule(db, made.id, by=ANNA, now=NOON)
    resume_schedule(db, "nightly", by=ANNA, now=NOON)
    delete_schedule(db, "nightly", by=ANNA)
    rows = db.execute(
        "SELECT actor, action, entity_id, detail ->> 'reason' FROM signalbox.audit_log ORDER BY id"
    ).fetchall()
    orders = ["create", "replace", "pause", "resume", "delete"]
    assert rows == [("anna", f"schedule.{order}", made.id, "the quarter ends") for order in orders]


def test_they_are_listed_by_name_and_filter_page_by_page(db: psycopg.Connection) -> None:
    for name, tenant in (("c", "acme"), ("a", None), ("b", "acme")):
        create(db, name=name, tenant=tenant, job_type="note_job" if name == "b" else "do_nothing")

    def names(**asked: Any) -> list[str]:
        return [one.name for one in list_schedules(db, **asked)]

    assert names() == ["a", "b", "c"]
    assert (names(limit=2), names(after_name="b")) == (["a", "b"], ["c"])
    assert (names(tenant="acme"), names(job_type="note_job")) == (["b", "c"], ["b"])
