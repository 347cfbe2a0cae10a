"""A run goes from its payload to the ledger on a real database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from signalbox.errors import ParamsRefused, PayloadRefused, RunLost, SchemaMismatch, TaskDisabled, TaskUnknown
from signalbox.ledger import ledger
from signalbox.ledger.context import Context, Done
from signalbox.ledger.ledger import ClaimRequest, RunEnd, RunStatus, Slot, Trigger
from signalbox.testing.rows import abandoned_run, count, runs_of
from signalbox.testing.stage import NOON, Stage
from tests.support.tasks import note_run
from tests.support.tasks.fail_once import Trouble

pytestmark = pytest.mark.usefixtures("effects")


def test_a_run_answers_what_happened_and_leaves_one_row(stage: Stage, db: psycopg.Connection) -> None:
    answer = stage.run("note_run", scheduled_time="2026-03-10T11:47:00Z")

    [row] = runs_of(db, "note_run")
    assert answer == {
        "task": "note_run",
        "slot": "2026-03-10T11:45:00+00:00",
        "status": "succeeded",
        "items": 1,
        "run_id": row["id"],
    }
    assert (row["trigger"], row["status"], row["items"]) == ("schedule", "succeeded", 1)
    assert row["duration_ms"] >= 0
    assert row["finished_at"] >= row["started_at"]
    assert count(db, "signalbox.job_locks") == 0


def test_detail_of_a_task_is_in_the_answer_but_not_the_ledger(stage: Stage, db: psycopg.Connection) -> None:
    answer = stage.run("greet", params={"name": "world", "times": 2})

    assert (answer["items"], answer["detail"]) == (2, {"greeted": "world"})
    [row] = runs_of(db, "greet")
    assert "world" not in str({name: value for name, value in row.items() if name != "request"})


def test_now_is_the_reference_time_else_the_scheduled_time_else_the_clock(stage: Stage, db: psycopg.Connection) -> None:
    stage.run("note_run", NOON)
    stage.run("note_run", NOON, scheduled_time="2026-03-10T11:30:05Z")
    stage.run("note_run", NOON, scheduled_time="2026-03-10T11:30:05Z", reference_time="2026-03-09T08:01:00+01:00")

    seen = [row[0] for row in db.execute("SELECT now FROM effects ORDER BY now DESC").fetchall()]
    assert seen == [
        NOON,
        datetime(2026, 3, 10, 11, 30, 5, tzinfo=UTC),
        datetime(2026, 3, 9, 7, 1, tzinfo=UTC),
    ]
    assert [row["trigger"] for row in runs_of(db, "note_run")] == ["manual", "schedule", "manual"]


def test_a_slot_that_has_succeeded_is_skipped(stage: Stage, db: psycopg.Connection) -> None:
    first = stage.run("note_run", NOON)
    again = stage.run("note_run", NOON + timedelta(minutes=14))

    assert again["status"] == "skipped"
    assert again["reason"] == f"the slot has already succeeded, in run {first['run_id']}"
    assert count(db, "effects") == 1
    assert count(db, "signalbox.job_locks") == 0


def test_force_runs_a_slot_that_has_succeeded(stage: Stage, db: psycopg.Connection) -> None:
    stage.run("note_run", NOON)
    assert stage.run("note_run", NOON, force=True)["status"] == "succeeded"
    assert count(db, "effects") == 2


def test_a_failed_run_gives_its_lease_back_and_its_retry_runs(stage: Stage, db: psycopg.Connection) -> None:
    db.execute("INSERT INTO troubles VALUES (1)")
    with pytest.raises(Trouble):
        stage.run("fail_once", NOON)
    assert count(db, "signalbox.job_locks") == 0
    assert count(db, "effects") == 0
    db.execute("DELETE FROM troubles")

    assert stage.run("fail_once", NOON)["status"] == "succeeded"

    failed, succeeded = runs_of(db, "fail_once")
    assert failed["status"] == "failed"
    assert failed["error"]["type"] == "Trouble"
    assert failed["error"]["message"] == "the table 'troubles' has a row"
    assert failed["error"]["at"].startswith("fail_once.py:")
    assert succeeded["status"] == "succeeded"
    assert count(db, "effects") == 1


def test_a_lease_that_ran_out_is_taken_over_and_its_run_ended(stage: Stage, db: psycopg.Connection) -> None:
    abandoned_run(db, "note_run", NOON, lease=timedelta(seconds=-1))

    assert stage.run("note_run", NOON)["status"] == "succeeded"

    lost, ours = runs_of(db, "note_run")
    assert (lost["status"], lost["error"]["type"]) == ("failed", "WorkerLost")
    assert ours["status"] == "succeeded"


def test_a_slot_that_another_worker_holds_is_skipped(stage: Stage, db: psycopg.Connection) -> None:
    abandoned_run(db, "note_run", NOON, lease=timedelta(minutes=1))

    answer = stage.run("note_run", NOON)

    assert (answer["status"], answer["reason"]) == (
        "skipped",
        "the slot is being run by another worker: see `signalbox history --task note_run --status running`",
    )
    assert count(db, "effects") == 0
    assert count(db, "signalbox.job_locks") == 1


def test_two_slots_may_run_at_once_where_their_task_allows_it(stage: Stage, db: psycopg.Connection) -> None:
    abandoned_run(db, "note_run", NOON - timedelta(minutes=15), lease=timedelta(minutes=1))
    assert stage.run("note_run", NOON)["status"] == "succeeded"


def test_slot_is_missed_while_another_runs_where_its_task_forbids_it(stage: Stage, db: psycopg.Connection) -> None:
    earlier = NOON - timedelta(minutes=15)
    abandoned_run(db, "note_alone", earlier, lease=timedelta(minutes=1), whole_task=True)

    assert stage.run("note_alone", NOON)["status"] == "skipped", "who asks by hand is told, and misses nothing"
    assert stage.run("note_alone", scheduled_time=NOON.isoformat())["status"] == "missed"
    assert count(db, "effects") == 0
    assert count(db, "signalbox.job_locks") == 2

    db.execute("DELETE FROM signalbox.job_locks")
    assert stage.run("note_alone", NOON)["status"] == "succeeded"
    assert count(db, "signalbox.job_locks") == 0


def test_a_late_worker_cannot_end_a_run_that_was_given_up(stage: Stage, db: psycopg.Connection) -> None:
    slot = Slot(stage.app.resources.tasks.find("note_run"), NOON)
    late = ClaimRequest("late", Trigger.MANUAL, timedelta(microseconds=1), NOON)
    claim = ledger.claim(db, slot, late)
    assert claim.status is RunStatus.RUNNING
    assert stage.run("note_run", NOON)["status"] == "succeeded"

    with pytest.raises(RunLost, match="no longer belongs to this worker"):
        ledger.record(db, slot, claim, "late", RunEnd(RunStatus.SUCCEEDED, items=99))
    assert [row["items"] for row in runs_of(db, "note_run")] == [0, 1]


def test_a_final_run_cannot_be_rewritten(stage: Stage, db: psycopg.Connection) -> None:
    stage.run("note_run", NOON)
    with pytest.raises(psycopg.errors.CheckViolation, match="is final"):
        db.execute("UPDATE signalbox.job_history SET status = 'running', finished_at = NULL")


@pytest.mark.parametrize(("items", "message"), [(-1, "-1 as its items"), ("7", "'7' as its items")])
def test_what_a_task_answers_is_checked_before_it_reaches_the_ledger(
    stage: Stage, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, items: int, message: str
) -> None:
    monkeypatch.setattr(note_run, "note_run", lambda _: Done(items))
    with pytest.raises(ValueError, match=message):
        stage.run("note_run", NOON)
    assert [row["status"] for row in runs_of(db, "note_run")] == ["failed"]
    assert count(db, "signalbox.job_locks") == 0


def test_an_error_whose_message_postgres_cannot_store_is_stored_without_it(
    stage: Stage, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Context) -> Done:
        raise Trouble("a\0b\ud800c")

    monkeypatch.setattr(note_run, "note_run", fail)
    with pytest.raises(Trouble):
        stage.run("note_run", NOON)
    assert [row["error"]["message"] for row in runs_of(db, "note_run")] == ["a\ufffdb?c"]


def test_a_reason_does_not_keep_a_run_from_being_continued(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(note_run, "note_run", lambda _: Done(1, more=True, reason="a page at a time"))
    answer = stage.run("note_run", NOON)
    assert (answer["reason"], answer["more"]) == ("a page at a time", True)
    assert [payload["origin"] for payload in stage.aws.payloads] == [{"step": 1, "trigger": "continuation"}]


def test_a_task_may_answer_details_that_the_ledger_does_not_keep(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(note_run, "note_run", lambda _: Done(1, detail={"found": 3}))
    assert stage.run("note_run", NOON)["detail"] == {"found": 3}


def test_end_of_a_run_may_be_recorded_twice_after_a_lost_answer(stage: Stage, db: psycopg.Connection) -> None:
    slot = Slot(stage.app.resources.tasks.find("note_run"), NOON)
    claim = ledger.claim(db, slot, ClaimRequest("w", Trigger.MANUAL, timedelta(minutes=1), NOON))
    ending = RunEnd(RunStatus.SUCCEEDED, items=1)
    assert ledger.record(db, slot, claim, "w", ending) == ledger.record(db, slot, claim, "w", ending)


def test_a_doubled_continuation_of_a_forced_run_does_its_work_once(
    stage: Stage, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.run("note_run", NOON)
    now = datetime.now(UTC)
    original = note_run.note_run
    monkeypatch.setattr(note_run, "note_run", lambda _: Done(1, more=True))
    stage.run("note_run", now, reference_time=NOON.isoformat(), force=True)
    monkeypatch.setattr(note_run, "note_run", original)
    [continuation] = stage.aws.payloads
    assert [stage.invoke(continuation, now)["status"] for _ in range(2)] == ["succeeded", "skipped"]


@pytest.mark.parametrize(
    ("event", "error", "words"),
    [
        ([], PayloadRefused, "payload must be a JSON object, and is an array"),
        (None, PayloadRefused, "and is null"),
        ({}, PayloadRefused, "field 'task' is missing"),
        ({"task": 7}, PayloadRefused, "field 'task'"),
        ({"task": "note_rum"}, TaskUnknown, "did you mean 'note_run'?"),
        ({"task": "note_run", "referense_time": "x"}, PayloadRefused, "did you mean 'reference_time'?"),
        ({"task": "note_run", "reference_time": "2026-03-10T12:00:00"}, PayloadRefused, "has no time zone"),
        ({"task": "note_run", "reference_time": "yesterday"}, PayloadRefused, "is not an ISO-8601 time"),
        ({"task": "note_run", "reference_time": 1773144000}, PayloadRefused, "must be text, an ISO-8601 time"),
        ({"task": "note_run", "reference_time": "2126-03-10T12:00:00Z"}, PayloadRefused, "is in the future"),
        ({"task": "note_run", "scheduled_time": "2026-03-10T12:30:00Z"}, PayloadRefused, "is in the future"),
        ({"task": "note_run", "reference_time": "9999-12-31T23:59:59-10:00"}, PayloadRefused, "between the years"),
        ({"task": "note_run", "reference_time": "0001-01-01T00:00:00Z"}, PayloadRefused, "between the years"),
        ({"task": "note_run", "params": {"a\0": 1}}, PayloadRefused, "NUL character"),
        (
            {"task": "note_run", "origin": {"trigger": "backfill", "backfill_id": "0" * 36}},
            PayloadRefused,
            "backfill_id",
        ),
        ({"task": "note_run", "force": "yes"}, PayloadRefused, "field 'force'"),
        ({"task": "note_run", "params": []}, PayloadRefused, "field 'params'"),
        ({"task": "poll_data"}, PayloadRefused, "is run by signalbox-poller, not by signalbox-archiver"),
        ({"operation": "list_runs"}, PayloadRefused, "operations are answered by signalbox-api"),
    ],
)
def test_a_payload_that_names_no_slot_is_refused_without_a_row(
    stage: Stage, db: psycopg.Connection, event: object, error: type[Exception], words: str
) -> None:
    with pytest.raises(error) as caught:
        stage.invoke(event)
    assert words in str(caught.value)
    assert count(db, "signalbox.job_history") == 0


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"operation": "list_rums"}, "PayloadRefused"),
        ({"operation": 7}, "PayloadRefused"),
        ({"task": "note_run"}, "PayloadRefused"),
        ({"operation": "list_runs", "params": {"task": "note_rum"}}, "TaskUnknown"),
        ({"operation": "show_job", "params": {"id": "seven"}}, "IdRefused"),
    ],
)
def test_operators_mistake_returns_an_answer_and_raises_no_error(stage: Stage, event: object, kind: str) -> None:
    refused = stage.app.operate(event, stage.invocation())["refused"]
    assert refused["errorType"] == kind
    assert refused["errorMessage"]


def test_refused_task_raises_so_that_its_rules_event_is_kept(stage: Stage) -> None:
    with pytest.raises(TaskUnknown):
        stage.invoke({"task": "note_rum"})


def test_an_operation_that_finds_another_schema_is_an_error_of_the_function(
    stage: Stage, db: psycopg.Connection
) -> None:
    db.execute("INSERT INTO signalbox.schema_migrations VALUES ('signalbox', 99, 'n', 99, 'c', now(), 'tests')")
    with pytest.raises(SchemaMismatch):
        stage.app.operate({"operation": "list_runs"}, stage.invocation())


@pytest.mark.parametrize(
    ("task", "params", "words"),
    [
        ("note_run", {"x": 1}, "task 'note_run' takes no params, but got x"),
        ("greet", {}, "field 'name' is missing"),
        ("greet", {"name": "a", "tmes": 2}, "did you mean 'times'?"),
        ("greet", {"name": "a", "times": "2"}, "field 'times'"),
    ],
)
def test_refused_params_leave_one_failed_row_after_repeated_deliveries(
    stage: Stage, db: psycopg.Connection, task: str, params: dict[str, Any], words: str
) -> None:
    for _ in range(3):  # Lambda repeats the request id when it retries
        with pytest.raises(ParamsRefused) as caught:
            stage.run(task, NOON, request_id="the-same", params=params)
        assert words in str(caught.value)
    [row] = runs_of(db, task)
    assert (row["status"], row["error"]["type"]) == ("failed", "ParamsRefused")


def test_disabled_task_is_refused_to_a_backfill_with_a_row(stage: Stage, db: psycopg.Connection) -> None:
    stage = stage.another(disabled_tasks="note_run")
    with pytest.raises(TaskDisabled, match="is disabled"):
        stage.run("note_run", origin={"trigger": "backfill"})
    assert [row["status"] for row in runs_of(db, "note_run")] == ["failed"]


def test_disabled_task_runs_by_hand_to_its_end(stage: Stage) -> None:
    stage = stage.another(disabled_tasks="note_run")
    assert stage.run("note_run")["status"] == "succeeded"
    assert stage.run("note_run", force=True, origin={"trigger": "continuation"})["status"] == "succeeded"


def test_rule_of_a_disabled_task_is_skipped_without_an_error(stage: Stage, db: psycopg.Connection) -> None:
    stage = stage.another(disabled_tasks="note_run")
    answer = stage.run("note_run", scheduled_time=NOON.isoformat())
    assert (answer["status"], answer["reason"]) == ("skipped", "the task is disabled in this stack")
    [row] = runs_of(db, "note_run")
    assert (row["status"], row["id"], row["ran"]) == ("skipped", answer["run_id"], False)


def test_the_poller_takes_its_params_beside_the_usual_fields(stage: Stage, db: psycopg.Connection) -> None:
    invocation = stage.invocation()
    answer = stage.app.poll({"force_retry": True, "backfill_hours": 6, "limit": None}, invocation)
    assert answer["task"] == "poll_data"
    assert (answer["status"], answer["reason"]) == ("skipped", "no upstream is configured")
    assert stage.app.poll({}, stage.invocation())["status"] == "skipped"
    assert stage.app.poll({"limit": 0}, stage.invocation())["status"] == "skipped"
    assert [row["status"] for row in runs_of(db, "poll_data")] == ["skipped"] * 3


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"backfill_hours": -1}, "field 'backfill_hours'"),
        ({"limit": -1}, "field 'limit'"),
        ({"force_retry": "no"}, "field 'force_retry'"),
    ],
)
def test_the_poller_refuses_bad_values_by_name(stage: Stage, event: dict[str, Any], words: str) -> None:
    with pytest.raises(ParamsRefused, match=words):
        stage.app.poll(event, stage.invocation())


def test_the_poller_runs_no_task_of_the_archiver(stage: Stage) -> None:
    with pytest.raises(PayloadRefused, match="is run by signalbox-archiver"):
        stage.app.poll({"task": "sweep_runs"}, stage.invocation())
