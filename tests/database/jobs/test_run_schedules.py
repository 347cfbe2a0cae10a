"""Schedules make one job an instant, lose and double none, and do not block each other."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest

from signalbox.job_schedules.schedule import MOST_AT_ONCE, JobSchedule
from signalbox.job_schedules.store import NewSchedule, create_schedule, pause_schedule, show_schedule
from signalbox.operate.audit import Actor
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.rows import count, select
from signalbox.testing.stage import NOON, Stage
from tests.support.jobs import REGISTRY
from tests.support.lock_waits import overlapping

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
ANNA = Actor("anna")


def make(db: psycopg.Connection, name: str = "hourly", *, now: datetime = NOON, **fields: Any) -> JobSchedule:
    timing = {} if {"every", "at"} & fields.keys() else {"cron": "0 * * * *"}
    if "every" in fields:
        fields["every_seconds"] = fields.pop("every").total_seconds()
    new = NewSchedule(name=name, **({"job_type": "do_nothing"} | timing | fields))
    return create_schedule(db, REGISTRY, new, by=ANNA, now=now)


def run(stage: Stage, at: datetime, **fields: Any) -> dict[str, Any]:
    return stage.run("run_schedules", at, force=True, **fields)


def jobs(db: psycopg.Connection) -> list[dict[str, Any]]:
    return select(db, "SELECT * FROM signalbox.jobs AS j ORDER BY j.scheduled_for, j.id")


def instants(db: psycopg.Connection) -> list[datetime]:
    return [job["scheduled_for"] for job in jobs(db)]


def break_payload(db: psycopg.Connection, name: str, **columns: str) -> None:
    """Change the schedule as if its type had changed, or its pack were gone."""
    changed = {"payload_template": '{"gone": 1}'} | columns
    for column, value in changed.items():
        db.execute(f"UPDATE signalbox.job_schedules SET {column} = %s WHERE name = %s".encode(), (value, name))


def test_instant_gets_its_job_with_all_schedule_fields_and_is_sent(
    stage: Stage, lanes: AwsStandIn, db: psycopg.Connection
) -> None:
    made = make(
        db, "report", job_type="note_job", payload={"subject": "$date"}, tenant="acme",
        options={"priority": 2, "tags": ["a"], "max_attempts": 9, "timeout_seconds": 1.5, "cap_key": "mail"},
    )  # fmt: skip
    # What a session speaks is in no key.
    stage.app.resources.database.connection().execute("SET timezone = 'Asia/Tokyo'")
    assert run(stage, NOON + HOUR)["items"] == 1
    [job] = jobs(db)
    expected = {
        "schedule_id": made.id, "scheduled_for": NOON + HOUR, "status": "queued", "subject_id": "2026-03-10",
        "tenant": "acme", "priority": 2, "lane": "high", "tags": ["a"], "max_attempts": 9, "timeout_ms": 1500,
        "cap_key": "mail", "created_by": "schedule:report",
        "idempotency_key": f"schedule:{made.id}:2026-03-10T13:00:00+00:00",
    }  # fmt: skip
    assert {name: str(job[name]) if name == "schedule_id" else job[name] for name in expected} == expected
    assert [message["job_id"] for message in lanes.take()] == [str(job["id"])]
    found = show_schedule(db, "report")
    assert (found.last_run_at, found.next_run_at, found.run_count) == (NOON + HOUR, NOON + 2 * HOUR, 1)


def test_date_follows_the_schedules_time_zone_and_instant_is_in_utc(stage: Stage, db: psycopg.Connection) -> None:
    times: dict[str, Any] = {"job_type": "note_job", "cron": "0 0 * * *"}
    make(db, "instant", timezone="Asia/Tokyo", payload={"subject": "$instant"}, **times)
    make(db, "date", timezone="America/New_York", payload={"subject": "$date"}, **times)
    make(db, "text", timezone="America/Chicago", payload={"subject": "$dates"}, **times)
    run(stage, NOON + DAY)
    subjects = [job["payload"]["subject"] for job in jobs(db)]
    assert subjects == ["2026-03-10T15:00:00+00:00", "2026-03-11", "$dates"]


def test_what_is_not_due_gets_nothing(stage: Stage, db: psycopg.Connection) -> None:
    make(db)
    assert run(stage, NOON + HOUR - MINUTE)["items"] == 0
    assert jobs(db) == []


def test_a_second_run_for_the_same_time_submits_nothing(stage: Stage, db: psycopg.Connection) -> None:
    make(db)
    assert [run(stage, NOON + HOUR)["items"] for _ in range(2)] == [1, 0]


def test_instant_with_a_job_gets_no_second_one_if_schedule_forgot(stage: Stage, db: psycopg.Connection) -> None:
    made = make(db)
    run(stage, NOON + HOUR)
    db.execute("UPDATE signalbox.job_schedules SET next_run_at = %s", (made.next_run_at,))
    run(stage, NOON + HOUR)
    assert len(jobs(db)) == 1


def test_a_past_reference_time_gives_what_that_time_would_have_given(stage: Stage, db: psycopg.Connection) -> None:
    make(db, catch_up="all")
    run(stage, NOON + DAY, reference_time=(NOON + 2 * HOUR).isoformat())
    assert instants(db) == [NOON + HOUR, NOON + 2 * HOUR]


@pytest.mark.parametrize(
    ("catch_up", "late", "hours", "missed"),
    [
        ("all", 5 * MINUTE, [1, 2, 3], 0),
        ("all", 6 * MINUTE, [1, 2, 3], 0),
        ("latest", 59 * MINUTE, [3], 2),
        ("skip", 5 * MINUTE, [3], 2),
        ("skip", 6 * MINUTE, [], 3),
    ],
)
def test_what_was_missed_is_made_up_for_as_the_policy_says(
    stage: Stage, db: psycopg.Connection, catch_up: str, late: timedelta, hours: list[int], missed: int
) -> None:
    make(db, catch_up=catch_up)
    run(stage, NOON + 3 * HOUR + late)
    found = show_schedule(db, "hourly")
    assert instants(db) == [NOON + hour * HOUR for hour in hours]
    assert (found.run_count, found.missed_count, found.next_run_at) == (len(hours), missed, NOON + 4 * HOUR)


def test_a_long_outage_is_made_up_for_bit_by_bit(stage: Stage, db: psycopg.Connection) -> None:
    make(db, cron="* * * * *", catch_up="all")
    end = NOON + (MOST_AT_ONCE + 50) * MINUTE
    assert [run(stage, end)["items"] for _ in range(3)] == [MOST_AT_ONCE, 50, 0]
    assert len(set(instants(db))) == MOST_AT_ONCE + 50


def test_an_outage_of_weeks_still_gives_the_latest_its_one_job(stage: Stage, db: psycopg.Connection) -> None:
    make(db, every=MINUTE)
    assert run(stage, NOON + 15 * DAY)["items"] == 1
    assert instants(db) == [NOON + 15 * DAY]
    assert show_schedule(db, "hourly").missed_count == 15 * 24 * 60 - 1


def test_it_ends_with_its_last_run(stage: Stage, db: psycopg.Connection) -> None:
    make(db, catch_up="all", max_runs=2)
    run(stage, NOON + DAY)
    found = show_schedule(db, "hourly")
    assert (instants(db), found.status) == ([NOON + HOUR, NOON + 2 * HOUR], "finished")


def test_expired_schedule_catches_up_what_was_due_before_its_expiry(stage: Stage, db: psycopg.Connection) -> None:
    make(db, catch_up="all", expires_at=NOON + 3 * HOUR)
    run(stage, NOON + DAY)
    assert instants(db) == [NOON + HOUR, NOON + 2 * HOUR]
    assert show_schedule(db, "hourly").next_run_at is None


def test_once_is_once_however_late(stage: Stage, db: psycopg.Connection) -> None:
    make(db, at=NOON + HOUR)
    assert [run(stage, NOON + DAY)["items"] for _ in range(2)] == [1, 0]
    assert show_schedule(db, "hourly").status == "finished"


def test_what_is_paused_gets_nothing(stage: Stage, db: psycopg.Connection) -> None:
    make(db)
    pause_schedule(db, "hourly", by=ANNA, now=NOON)
    assert run(stage, NOON + DAY)["items"] == 0


@pytest.mark.parametrize(
    "broken", [{}, {"job_type": "gone"}, {"timezone": "Mars/Base"}, {"options": '{"group": "shut"}'}]
)
def test_one_that_is_refused_says_why_stays_where_it_is_and_stops_nobody(
    stage: Stage, db: psycopg.Connection, broken: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    db.execute("INSERT INTO signalbox.job_groups (id, sealed) VALUES ('shut', true)")
    for name in ("first", "broken", "last"):
        make(db, name)
    break_payload(db, "broken", **({"payload_template": "{}"} if broken else {}), **broken)
    assert run(stage, NOON + HOUR)["items"] == 2
    found = show_schedule(db, "broken")
    assert (found.status, found.next_run_at, found.run_count) == ("failing", NOON + HOUR, 0)
    assert found.error
    assert '"SchedulesFailed":[1' in capsys.readouterr().out.replace(" ", "")


def test_one_that_was_refused_gets_its_job_once_it_is_mended(stage: Stage, db: psycopg.Connection) -> None:
    make(db)
    break_payload(db, "hourly")
    run(stage, NOON + HOUR)
    break_payload(db, "hourly", payload_template="{}")
    assert run(stage, NOON + HOUR + 20 * MINUTE)["items"] == 1
    found = show_schedule(db, "hourly")
    assert (instants(db), found.error, found.status) == ([NOON + HOUR], None, "active")


def test_broken_schedules_do_not_block_others_across_batches(stage: Stage, db: psycopg.Connection) -> None:
    for number in range(230):
        make(db, f"s-{number}")
    db.execute("UPDATE signalbox.job_schedules SET payload_template = '{\"gone\": 1}' WHERE name < 's-2'")
    broken = count(db, "signalbox.job_schedules WHERE name < 's-2'")
    assert broken > 100
    assert run(stage, NOON + HOUR)["items"] == 230 - broken
    assert len(jobs(db)) == 230 - broken


def test_two_runs_at_once_submit_once(stage: Stage, db: psycopg.Connection) -> None:
    made = make(db, catch_up="all")

    def another(at: datetime) -> int:
        worker = stage.another()
        return int(run(worker, at)["items"])

    # Nobody can store a job for now: the first run holds the schedule and waits, and then the second one comes.
    _, items = overlapping(
        db,
        lambda: db.execute("LOCK TABLE signalbox.jobs IN EXCLUSIVE MODE"),
        lambda: another(NOON + 2 * HOUR),
        lambda: another(NOON + 2 * HOUR + MINUTE),
    )
    assert items == [2, 0]
    assert (show_schedule(db, made.id).run_count, len(jobs(db))) == (2, 2)


def test_a_schedule_that_another_run_is_at_is_left_to_that_one(dsn: str, stage: Stage, db: psycopg.Connection) -> None:
    make(db, "held")
    make(db, "free")
    with psycopg.connect(dsn) as other:
        other.execute("SELECT FROM signalbox.job_schedules WHERE name = 'held' FOR UPDATE")
        assert run(stage, NOON + HOUR)["items"] == 1
    assert show_schedule(db, "held").run_count == 0


def test_a_crash_before_the_commit_leaves_the_instant_due(stage: Stage, db: psycopg.Connection) -> None:
    make(db)
    db.execute("ALTER TABLE signalbox.job_schedules ADD CONSTRAINT no_step CHECK (run_count = 0) NOT VALID")
    with pytest.raises(psycopg.errors.CheckViolation):
        run(stage, NOON + HOUR)
    assert jobs(db) == []
    db.execute("ALTER TABLE signalbox.job_schedules DROP CONSTRAINT no_step")
    assert run(stage, NOON + HOUR)["items"] == 1


def test_lanes_that_are_away_lose_nothing(stage: Stage, lanes: AwsStandIn, db: psycopg.Connection) -> None:
    make(db)
    lanes.away.add("normal")
    assert run(stage, NOON + HOUR)["items"] == 1
    assert [job["status"] for job in jobs(db)] == ["queued"]


def test_without_time_it_says_that_there_is_more(stage: Stage, db: psycopg.Connection) -> None:
    make(db)
    answer = run(stage, NOON + HOUR, seconds=0)
    assert (answer["items"], answer["more"]) == (0, True)
