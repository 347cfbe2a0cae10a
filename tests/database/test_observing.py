"""An operator sees runs in logs, metrics and the operations' answers."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest

from signalbox.engine_pack import ENGINE
from signalbox.errors import JobTypeUnknown, ParamsRefused
from signalbox.migrate.migrations import latest_version
from signalbox.operations.ledger import SQL, ListRuns
from signalbox.testing.rows import abandoned_run, failed_run, missed_slot, skipped_run, succeeded_run
from signalbox.testing.stage import NOON, Stage
from tests.support.tasks.fail_once import Trouble

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
HOURLY = "cron(0 * * * ? *)"
pytestmark = pytest.mark.usefixtures("effects")


def printed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_the_line_of_a_run_has_its_items_duration_and_lateness(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    stage.run("note_run", NOON, scheduled_time=(NOON - timedelta(seconds=90)).isoformat())
    [line] = printed(capsys)
    assert "_aws" not in line, "nothing to count, nothing to pay for"
    assert (line["service"], line["task"], line["message"]) == ("signalbox", "note_run", "run.succeeded")
    assert (line["items"], line["late_seconds"]) == (1, 90)
    assert line["duration_ms"] >= 0


def test_a_run_that_fails_is_counted_of_the_stack_alone(
    stage: Stage, db: psycopg.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    db.execute("INSERT INTO troubles VALUES (1)")
    with suppress(Trouble):
        stage.run("fail_once", NOON)
    [line] = [line for line in printed(capsys) if "_aws" in line]
    [directive] = line["_aws"]["CloudWatchMetrics"]
    assert (directive["Namespace"], directive["Dimensions"]) == ("Signalbox", [["service"]])
    assert (line["RunsFailed"], line["message"], line["task"]) == ([1], "run.failed", "fail_once")


def test_missed_slots_are_counted_for_the_task_that_missed_them(
    stage: Stage, db: psycopg.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    succeeded_run(db, "fail_once", NOON - 3 * HOUR)
    stage.run("reconcile_slots", NOON + timedelta(minutes=30))
    counted = {line["task"]: line["MissedSlots"] for line in printed(capsys) if "MissedSlots" in line}
    assert counted == {"fail_once": [3]}


def test_metrics_line_of_a_run_has_its_ids_and_never_its_params(
    stage: Stage, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = stage.run("greet", NOON, params={"name": "sesame"})
    output = capsys.readouterr().out
    [line] = [json.loads(line) for line in output.splitlines()]
    assert (line["message"], line["task"]) == ("run.succeeded", "greet")
    assert (line["run_id"], line["slot"], line["trigger"]) == (answer["run_id"], NOON.isoformat(), "manual")
    assert line["worker_id"].startswith("request-")
    assert "sesame" not in output + caplog.text


def test_list_tasks_shows_each_with_its_policies(stage: Stage) -> None:
    tasks = {task["name"]: task for task in stage.operate("list_tasks")["tasks"]}
    assert tasks["prune_history"] == {
        "name": "prune_history",
        "summary": "delete runs older than their task's retention, old backfills and expired leases",
        "function": "archiver",
        "schedule": "cron(30 2 * * ? *)",
        "catch_up": "latest",
        "max_lateness_seconds": 86400,
        "overlap": "allow",
        "retention_days": 90,
        "enabled": True,
    }
    assert tasks["greet"]["schedule"] is None


def test_list_runs_pages_through_the_ledger_newest_first(stage: Stage, db: psycopg.Connection) -> None:
    made = [succeeded_run(db, "note_run", NOON - n * HOUR) for n in range(5)]
    first = stage.operate("list_runs", limit=3)
    assert [run["id"] for run in first["runs"]] == made[:1:-1]
    rest = stage.operate("list_runs", limit=3, before_id=first["next"])
    assert stage.operate("list_runs", after_id=first["next"])["runs"] == first["runs"][:-1]
    assert [run["id"] for run in rest["runs"]] == made[1::-1]
    assert rest["next"] is None


@pytest.mark.parametrize(
    ("asked", "index"),
    [({"task": "rare"}, "job_type_id"), ({"status": "failed"}, "status_id"), ({"trigger": "backfill"}, "trigger_id")],
)
def test_list_runs_reads_no_runs_but_those_asked_for(db: psycopg.Connection, asked: dict[str, str], index: str) -> None:
    db.execute(
        "INSERT INTO signalbox.job_history (job_type, slot, trigger, status, worker_id, started_at, finished_at) "
        "SELECT 'note_run', now(), 'schedule', 'succeeded', 'x', now(), now() FROM generate_series(1, 20000)"
    )
    db.execute("VACUUM ANALYZE signalbox.job_history")
    values = ListRuns.model_validate(asked).model_dump()
    plan = [row[0] for row in db.execute(f"EXPLAIN {SQL['list_runs']}".encode(), values).fetchall()]
    assert any(f"_{index}_idx" in line for line in plan)
    assert all("rows=1 " in line for line in plan if "Seq Scan" in line), "empty partitions alone"


def test_list_runs_filters(stage: Stage, db: psycopg.Connection) -> None:
    succeeded_run(db, "note_run", NOON)
    failed = failed_run(db, "fail_once", NOON - HOUR, trigger="manual")
    for filters in (
        {"task": "fail_once"},
        {"status": "failed"},
        {"trigger": "manual"},
        {"until": "2026-03-10T11:30:00Z"},
    ):
        runs = stage.operate("list_runs", NOON, **filters)["runs"]
        assert [run["id"] for run in runs] == [failed]
        assert runs[0]["error"]["type"] == "Trouble"
    assert stage.operate("list_runs", since="2026-03-10T12:30:00Z")["runs"] == []


def test_show_slots_folds_the_ledger_to_one_word_a_slot(stage: Stage, db: psycopg.Connection) -> None:
    names = ["again", "part", "failed", "lost", "work", "missed", "due", "away", "refused", "both"]
    hours = {name: NOON - n * HOUR for n, name in enumerate(names)}
    failed_run(db, "fail_once", hours["again"])
    succeeded_run(db, "fail_once", hours["again"], items=7)
    succeeded_run(db, "fail_once", hours["part"], more=True)
    failed_run(db, "fail_once", hours["failed"])
    abandoned_run(db, "fail_once", hours["work"], lease=HOUR)
    missed_slot(db, "fail_once", hours["missed"])
    missed_slot(db, "fail_once", hours["lost"])
    succeeded_run(db, "fail_once", hours["lost"], trigger="catch_up")
    skipped_run(db, "fail_once", hours["away"], ran=False)
    failed_run(db, "fail_once", hours["refused"], ran=False)
    skipped_run(db, "fail_once", hours["both"], ran=False)
    missed_slot(db, "fail_once", hours["both"])

    shown = stage.operate("show_slots", task="fail_once", since=hours["both"].isoformat(), until=NOON.isoformat())

    [row] = shown["tasks"]
    assert [(slot["slot"], slot["status"]) for slot in reversed(row["slots"])] == [
        (hours["again"].isoformat(), "succeeded"),
        (hours["part"].isoformat(), "partial"),
        (hours["failed"].isoformat(), "failed"),
        (hours["lost"].isoformat(), "succeeded"),
        (hours["work"].isoformat(), "running"),
        (hours["missed"].isoformat(), "missed"),
        (hours["due"].isoformat(), "due"),
        (hours["away"].isoformat(), "skipped"),
        (hours["refused"].isoformat(), "failed"),
        (hours["both"].isoformat(), "missed"),
    ]
    assert row["slots"][-1]["items"] == 7
    assert row["slots"][-1]["runs"] == 2


def unrecorded(stage: Stage, since: datetime, until: datetime = NOON) -> list[tuple[datetime, str]]:
    """Return the slots of fail_once in that time without a run."""
    [row] = stage.operate("show_slots", task="fail_once", since=since.isoformat(), until=until.isoformat())["tasks"]
    return [(datetime.fromisoformat(slot["slot"]), slot["status"]) for slot in row["slots"] if not slot["runs"]]


def know_schedule(db: psycopg.Connection, since: datetime, schedule: str = HOURLY, *, changed: bool = False) -> None:
    db.execute("INSERT INTO signalbox.task_schedules VALUES ('fail_once', %s, %s, %s)", (schedule, since, changed))


def test_no_slot_is_due_where_the_schedule_is_not_known(stage: Stage) -> None:
    assert unrecorded(stage, NOON - 24 * HOUR, NOON - MINUTE) == []


def test_slots_are_due_from_the_first_scheduled_run_on(stage: Stage, db: psycopg.Connection) -> None:
    succeeded_run(db, "fail_once", NOON - 2 * HOUR)
    succeeded_run(db, "fail_once", NOON - 5 * HOUR, trigger="manual")
    assert unrecorded(stage, NOON - 24 * HOUR) == [(NOON - HOUR, "due"), (NOON, "due")]


def test_slots_are_due_since_the_schedule_is_known(stage: Stage, db: psycopg.Connection) -> None:
    know_schedule(db, NOON - HOUR - MINUTE)
    assert unrecorded(stage, NOON - 24 * HOUR) == [(NOON - HOUR, "due"), (NOON, "due")]


def test_slots_of_a_changed_schedule_are_not_due_before_the_change(stage: Stage, db: psycopg.Connection) -> None:
    know_schedule(db, NOON - MINUTE, changed=True)
    succeeded_run(db, "fail_once", NOON - 5 * HOUR)
    assert unrecorded(stage, NOON - 24 * HOUR) == [(NOON, "due")]


def test_no_slot_is_due_by_a_schedule_that_was_not_noted_yet(stage: Stage, db: psycopg.Connection) -> None:
    know_schedule(db, NOON - 24 * HOUR, "rate(1 day)")
    succeeded_run(db, "fail_once", NOON - 5 * HOUR)
    assert unrecorded(stage, NOON - 24 * HOUR, NOON - MINUTE) == []


def test_slots_too_old_to_be_reconciled_were_missed(stage: Stage, db: psycopg.Connection) -> None:
    know_schedule(db, NOON - 300 * 24 * HOUR)
    week = NOON - 7 * 24 * HOUR
    assert unrecorded(stage, week - HOUR, week + HOUR) == [
        (week - HOUR, "missed"),
        (week, "missed"),
        (week + HOUR, "due"),
    ]


def test_slots_whose_runs_may_be_pruned_are_not_shown(stage: Stage, db: psycopg.Connection) -> None:
    know_schedule(db, NOON - 300 * 24 * HOUR)
    kept = NOON - 90 * 24 * HOUR
    assert unrecorded(stage, kept - 2 * HOUR, kept) == [(kept, "missed")]


def test_examine_says_how_the_database_stands(stage: Stage, db: psycopg.Connection) -> None:
    abandoned_run(db, "note_run", NOON, lease=timedelta(seconds=-1))
    failed_run(db, "fail_once", NOON)
    missed_slot(db, "fail_once", NOON)
    examined = stage.operate("examine")
    assert examined["schema"] == {"versions": {"signalbox": latest_version(ENGINE)}, "pending": []}
    assert examined["locks"] == {"held": 0, "expired": 1}
    assert examined["runs"] == {"running": 1, "failed_last_day": 1, "missed_last_day": 1}
    assert examined["database"]["latency_ms"] > 0


def test_code_that_was_rolled_back_still_says_how_the_database_stands(stage: Stage, db: psycopg.Connection) -> None:
    newer = latest_version(ENGINE) + 1
    db.execute(
        "INSERT INTO signalbox.schema_migrations VALUES ('signalbox', %s, 'newer', 1, 'c', now(), 'tests')", (newer,)
    )
    schema = stage.operate("examine")["schema"]
    assert (schema["versions"], schema["pending"]) == ({"signalbox": newer}, [])
    assert "the database is newer than this code" in schema["fault"]


def test_task_is_run_by_hand_for_the_slot_of_a_time(stage: Stage) -> None:
    asked = stage.operate("run_task", task="note_run", reference_time=(NOON + MINUTE).isoformat(), by="jo")
    assert (asked["slot"], asked["status"]) == (NOON.isoformat(), "requested")
    assert [answer["slot"] for answer in stage.deliver()] == [asked["slot"]]
    with pytest.raises(ParamsRefused, match="takes no params"):
        stage.operate("run_task", task="note_run", params={"hours": 1})
    [row] = stage.db.execute("SELECT actor, action, entity_id FROM signalbox.audit_log").fetchall()
    assert row == ("jo", "task.run", "note_run")


def test_job_types_are_listed_with_their_schemas(stage: Stage) -> None:
    names = [job_type["name"] for job_type in stage.operate("list_job_types")["job_types"]]
    assert "deliver_webhook" in names
    assert "url" in stage.operate("show_job_type", name="deliver_webhook")["job_type"]["payload_schema"]["properties"]
    with pytest.raises(JobTypeUnknown, match="did you mean 'deliver_webhook'"):
        stage.operate("show_job_type", name="deliver_webhok")
