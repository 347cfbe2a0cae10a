"""Running the schedules: one job an instant, none lost, none doubled, and no schedule in another one's way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from signalbox.job_schedules.schedule import MOST_AT_ONCE, JobSchedule
from signalbox.job_schedules.store import NewSchedule, create_schedule, pause_schedule, show_schedule
from signalbox.operate.audit import Actor
from tests.support.invoke_recorder import InvokeRecorder
from tests.support.jobs_stage import JobsStage
from tests.support.ledger_rows import count
from tests.support.work_bench import CATALOGUE, WorkBench, overlapping

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
ANNA = Actor("anna")


def make(db: psycopg.Connection, name: str = "hourly", *, now: datetime = NOON, **fields: Any) -> JobSchedule:
    timing = {} if {"every", "at"} & fields.keys() else {"cron": "0 * * * *"}
    new = NewSchedule(name=name, **({"job_type": "do_nothing"} | timing | fields))
    return create_schedule(db, CATALOGUE, new, by=ANNA, now=now)


def run(stage: JobsStage, at: datetime, **fields: Any) -> dict[str, Any]:
    return stage.invoke("run_schedules", at, force=True, **fields)


def jobs(db: psycopg.Connection) -> list[dict[str, Any]]:
    with db.cursor(row_factory=dict_row) as cursor:
        return cursor.execute("SELECT * FROM signalbox.jobs AS j ORDER BY j.scheduled_for, j.id").fetchall()


def instants(db: psycopg.Connection) -> list[datetime]:
    return [job["scheduled_for"] for job in jobs(db)]


def break_payload(db: psycopg.Connection, name: str, **columns: str) -> None:
    """As if the type had changed, or its pack were gone, since the schedule was made."""
    changed = {"payload_template": '{"gone": 1}'} | columns
    for column, value in changed.items():
        db.execute(f"UPDATE signalbox.job_schedules SET {column} = %s WHERE name = %s".encode(), (value, name))


def test_an_instant_gets_its_job_with_all_that_the_schedule_says_and_is_sent(
    jobs_stage: JobsStage, db: psycopg.Connection
) -> None:
    made = make(
        db, "report", job_type="note_job", payload={"subject": "$date"}, tenant="acme",
        options={"priority": 2, "tags": ["a"], "max_attempts": 9, "timeout_seconds": 1.5, "cap_key": "mail"},
    )  # fmt: skip
    jobs_stage.connection.execute("SET timezone = 'Asia/Tokyo'")  # what a session speaks is in no key
    assert run(jobs_stage, NOON + HOUR)["items"] == 1
    [job] = jobs(db)
    expected = {
        "schedule_id": made.id, "scheduled_for": NOON + HOUR, "status": "queued", "subject_id": "2026-03-10",
        "tenant": "acme", "priority": 2, "lane": "high", "tags": ["a"], "max_attempts": 9, "timeout_ms": 1500,
        "cap_key": "mail", "created_by": "schedule:report",
        "idempotency_key": f"schedule:{made.id}:2026-03-10T13:00:00+00:00",
    }  # fmt: skip
    assert {name: str(job[name]) if name == "schedule_id" else job[name] for name in expected} == expected
    assert [message["job_id"] for message in jobs_stage.receive("high")] == [str(job["id"])]
    found = show_schedule(db, "report")
    assert (found.last_run_at, found.next_run_at, found.run_count) == (NOON + HOUR, NOON + 2 * HOUR, 1)


def test_a_date_is_that_of_the_schedules_own_calendar_and_an_instant_is_in_utc(
    jobs_stage: JobsStage, db: psycopg.Connection
) -> None:
    times: dict[str, Any] = {"job_type": "note_job", "cron": "0 0 * * *"}
    make(db, "instant", timezone="Asia/Tokyo", payload={"subject": "$instant"}, **times)
    make(db, "date", timezone="America/New_York", payload={"subject": "$date"}, **times)
    make(db, "text", timezone="America/Chicago", payload={"subject": "$dates"}, **times)
    run(jobs_stage, NOON + DAY)
    subjects = [job["payload"]["subject"] for job in jobs(db)]
    assert subjects == ["2026-03-10T15:00:00+00:00", "2026-03-11", "$dates"]


def test_what_is_not_due_gets_nothing(jobs_stage: JobsStage, db: psycopg.Connection) -> None:
    make(db)
    assert run(jobs_stage, NOON + HOUR - MINUTE)["items"] == 0
    assert jobs(db) == []


def test_a_second_run_for_the_same_time_submits_nothing(jobs_stage: JobsStage, db: psycopg.Connection) -> None:
    make(db)
    assert [run(jobs_stage, NOON + HOUR)["items"] for _ in range(2)] == [1, 0]


def test_an_instant_that_has_its_job_gets_no_second_one_even_if_the_schedule_forgot(
    jobs_stage: JobsStage, db: psycopg.Connection
) -> None:
    made = make(db)
    run(jobs_stage, NOON + HOUR)
    db.execute("UPDATE signalbox.job_schedules SET next_run_at = %s", (made.next_run_at,))
    run(jobs_stage, NOON + HOUR)
    assert len(jobs(db)) == 1


def test_a_past_reference_time_gives_what_that_time_would_have_given(
    jobs_stage: JobsStage, db: psycopg.Connection
) -> None:
    make(db, catch_up="all")
    run(jobs_stage, NOON + DAY, reference_time=(NOON + 2 * HOUR).isoformat())
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
    jobs_stage: JobsStage, db: psycopg.Connection, catch_up: str, late: timedelta, hours: list[int], missed: int
) -> None:
    make(db, catch_up=catch_up)
    run(jobs_stage, NOON + 3 * HOUR + late)
    found = show_schedule(db, "hourly")
    assert instants(db) == [NOON + hour * HOUR for hour in hours]
    assert (found.run_count, found.missed_count, found.next_run_at) == (len(hours), missed, NOON + 4 * HOUR)


def test_a_long_outage_is_made_up_for_bit_by_bit(jobs_stage: JobsStage, db: psycopg.Connection) -> None:
    make(db, cron="* * * * *", catch_up="all")
    end = NOON + (MOST_AT_ONCE + 50) * MINUTE
    assert [run(jobs_stage, end)["items"] for _ in range(3)] == [MOST_AT_ONCE, 50, 0]
    assert len(set(instants(db))) == MOST_AT_ONCE + 50


def test_an_outage_of_weeks_still_gives_the_latest_its_one_job(jobs_stage: JobsStage, db: psycopg.Connection) -> None:
    make(db, every=MINUTE)
    assert run(jobs_stage, NOON + 15 * DAY)["items"] == 1
    assert instants(db) == [NOON + 15 * DAY]
    assert show_schedule(db, "hourly").missed_count == 15 * 24 * 60 - 1


def test_it_ends_with_its_last_run(jobs_stage: JobsStage, db: psycopg.Connection) -> None:
    make(db, catch_up="all", max_runs=2)
    run(jobs_stage, NOON + DAY)
    found = show_schedule(db, "hourly")
    assert (instants(db), found.status) == ([NOON + HOUR, NOON + 2 * HOUR], "finished")


def test_it_ends_with_its_expiry_but_what_was_due_before_is_made_up_for(
    jobs_stage: JobsStage, db: psycopg.Connection
) -> None:
    make(db, catch_up="all", expires_at=NOON + 3 * HOUR)
    run(jobs_stage, NOON + DAY)
    assert instants(db) == [NOON + HOUR, NOON + 2 * HOUR]
    assert show_schedule(db, "hourly").next_run_at is None


def test_once_is_once_however_late(jobs_stage: JobsStage, db: psycopg.Connection) -> None:
    make(db, at=NOON + HOUR)
    assert [run(jobs_stage, NOON + DAY)["items"] for _ in range(2)] == [1, 0]
    assert show_schedule(db, "hourly").status == "finished"


def test_what_is_paused_gets_nothing(jobs_stage: JobsStage, db: psycopg.Connection) -> None:
    make(db)
    pause_schedule(db, "hourly", by=ANNA, now=NOON)
    assert run(jobs_stage, NOON + DAY)["items"] == 0


@pytest.mark.parametrize(
    "broken", [{}, {"job_type": "gone"}, {"timezone": "Mars/Base"}, {"options": '{"group": "shut"}'}]
)
def test_one_that_is_refused_says_why_stays_where_it_is_and_stops_nobody(
    jobs_stage: JobsStage, db: psycopg.Connection, broken: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    db.execute("INSERT INTO signalbox.job_groups (id, sealed) VALUES ('shut', true)")
    for name in ("first", "broken", "last"):
        make(db, name)
    break_payload(db, "broken", **({"payload_template": "{}"} if broken else {}), **broken)
    assert run(jobs_stage, NOON + HOUR)["items"] == 2
    found = show_schedule(db, "broken")
    assert (found.status, found.next_run_at, found.run_count) == ("failing", NOON + HOUR, 0)
    assert found.error
    assert '"SchedulesFailed":[1' in capsys.readouterr().out.replace(" ", "")


def test_one_that_was_refused_gets_its_job_once_it_is_mended(jobs_stage: JobsStage, db: psycopg.Connection) -> None:
    make(db)
    break_payload(db, "hourly")
    run(jobs_stage, NOON + HOUR)
    break_payload(db, "hourly", payload_template="{}")
    assert run(jobs_stage, NOON + HOUR + 20 * MINUTE)["items"] == 1
    found = show_schedule(db, "hourly")
    assert (instants(db), found.error, found.status) == ([NOON + HOUR], None, "active")


def test_more_than_a_batch_is_due_at_once_and_the_broken_are_in_the_way_of_none(
    jobs_stage: JobsStage, db: psycopg.Connection
) -> None:
    for number in range(230):
        make(db, f"s-{number}")
    db.execute("UPDATE signalbox.job_schedules SET payload_template = '{\"gone\": 1}' WHERE name < 's-2'")
    broken = count(db, "signalbox.job_schedules WHERE name < 's-2'")
    assert broken > 100
    assert run(jobs_stage, NOON + HOUR)["items"] == 230 - broken
    assert len(jobs(db)) == 230 - broken


def test_two_runs_at_once_submit_once(
    dsn: str, jobs_stage: JobsStage, invokes: InvokeRecorder, db: psycopg.Connection
) -> None:
    made = make(db, catch_up="all")

    def another(at: datetime) -> int:
        with JobsStage(dsn, invokes, CATALOGUE) as stage:
            items = run(stage, at)["items"]
            stage.drop_lanes()
            return int(items)

    # Nobody can store a job for now: the first run holds the schedule and waits, and then the second one comes.
    _, items = overlapping(
        WorkBench(db),
        lambda: db.execute("LOCK TABLE signalbox.jobs IN EXCLUSIVE MODE"),
        lambda: another(NOON + 2 * HOUR),
        lambda: another(NOON + 2 * HOUR + MINUTE),
    )
    assert items == [2, 0]
    assert (show_schedule(db, made.id).run_count, len(jobs(db))) == (2, 2)


def test_a_schedule_that_another_run_is_at_is_left_to_that_one(
    dsn: str, jobs_stage: JobsStage, db: psycopg.Connection
) -> None:
    make(db, "held")
    make(db, "free")
    with psycopg.connect(dsn) as other:
        other.execute("SELECT FROM signalbox.job_schedules WHERE name = 'held' FOR UPDATE")
        assert run(jobs_stage, NOON + HOUR)["items"] == 1
    assert show_schedule(db, "held").run_count == 0


def test_a_crash_before_the_commit_leaves_the_instant_due(jobs_stage: JobsStage, db: psycopg.Connection) -> None:
    make(db)
    db.execute("ALTER TABLE signalbox.job_schedules ADD CONSTRAINT no_step CHECK (run_count = 0) NOT VALID")
    with pytest.raises(psycopg.errors.CheckViolation):
        run(jobs_stage, NOON + HOUR)
    assert jobs(db) == []
    db.execute("ALTER TABLE signalbox.job_schedules DROP CONSTRAINT no_step")
    assert run(jobs_stage, NOON + HOUR)["items"] == 1


def test_lanes_that_are_away_lose_nothing(jobs_stage: JobsStage, db: psycopg.Connection) -> None:
    make(db)
    jobs_stage.drop_lanes()
    assert run(jobs_stage, NOON + HOUR)["items"] == 1
    assert [job["status"] for job in jobs(db)] == ["queued"]


def test_without_time_it_says_that_there_is_more(jobs_stage: JobsStage, db: psycopg.Connection) -> None:
    make(db)
    answer = run(jobs_stage, NOON + HOUR, seconds=0)
    assert (answer["items"], answer["more"]) == (0, True)
