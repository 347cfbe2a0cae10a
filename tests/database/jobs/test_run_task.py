"""run_task runs a scheduled task as a job, with the usual ledger, slots and leases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from signalbox.errors import PayloadRefused, TaskUnknown
from signalbox.job_schedules.store import NewSchedule, create_schedule
from signalbox.ledger import run
from signalbox.operate.audit import Actor
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.rows import abandoned_run, count, runs_of, succeeded_run
from signalbox.testing.stage import Stage
from tests.support.tasks.mark_rows import BATCH

SIX = datetime(2026, 3, 10, 6, 0, tzinfo=UTC)
pytestmark = pytest.mark.usefixtures("effects", "marks")


@pytest.fixture
def marks(db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE marks (id int PRIMARY KEY, marked int NOT NULL DEFAULT 0)")


def begin(stage: Stage, task: str, at: datetime | None = SIX, **payload: Any) -> str:
    asked = {"task": task} | ({"reference_time": at.isoformat()} if at else {}) | payload
    return stage.submit("run_task", payload=asked)


def test_a_task_runs_as_a_job_and_its_answer_is_the_jobs_result(stage: Stage, invokes: AwsStandIn) -> None:
    job = stage.finish(begin(stage, "note_run"))
    [run] = runs_of(stage.db, "note_run")
    assert (job["status"], job["subject_id"]) == ("completed", "note_run")
    assert job["result"] == {
        "task": "note_run", "slot": SIX.isoformat(), "status": "succeeded", "items": 1, "run_id": run["id"],
    }  # fmt: skip
    assert (run["slot"], run["trigger"], run["reference_time"]) == (SIX, "manual", SIX)
    assert run["worker_id"].startswith(f"job-{job['id']}/")
    assert not invokes.invoked


def test_params_reach_the_task(stage: Stage) -> None:
    job = stage.finish(begin(stage, "greet", params={"name": "Ada"}))
    assert job["status"] == "completed", job["error_details"]


def test_slot_that_has_succeeded_is_skipped_and_its_job_completes(stage: Stage) -> None:
    done = succeeded_run(stage.db, "note_run", SIX)
    job = stage.finish(begin(stage, "note_run"))
    assert (job["status"], job["result"]["status"]) == ("completed", "skipped")
    assert str(done) in job["result"]["reason"]
    assert count(stage.db, "effects") == 0


def test_unless_it_is_forced_which_a_retry_does_not_double(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    succeeded_run(stage.db, "note_run", SIX)
    job_id, run_task = begin(stage, "note_run", force=True), run.run_task

    def crash_after_it(*args: Any, **named: Any) -> Any:
        run_task(*args, **named)
        monkeypatch.setattr(run, "run_task", run_task)
        raise ConnectionError("the worker loses what it was told")

    monkeypatch.setattr(run, "run_task", crash_after_it)
    assert stage.step(job_id)["status"] == "pending"
    job = stage.finish(job_id)
    assert (job["status"], job["result"]["status"]) == ("completed", "skipped")
    assert count(stage.db, "effects") == 1


@pytest.mark.parametrize("force", [False, True])
def test_a_slot_that_another_worker_runs_is_waited_for(stage: Stage, force: bool) -> None:
    if force:
        succeeded_run(stage.db, "note_run", SIX)
    abandoned_run(stage.db, "note_run", SIX, lease=timedelta(minutes=5))
    job_id = begin(stage, "note_run", force=force)
    for _ in range(7):  # more often than it may fail
        job = stage.step(job_id)
        assert (job["status"], job["attempts"]) == ("pending", 0)
    stage.db.execute("UPDATE signalbox.job_locks SET expires_at = now()")
    assert stage.finish(job_id)["result"]["status"] == "succeeded"
    assert {attempt["status"] for attempt in stage.attempts(job_id)} == {"snoozed", "completed"}


def test_what_the_other_worker_did_meanwhile_is_not_done_again(stage: Stage) -> None:
    run = abandoned_run(stage.db, "note_run", SIX, lease=timedelta(minutes=5))
    job_id = begin(stage, "note_run")
    assert stage.step(job_id)["status"] == "pending"
    stage.db.execute(
        "UPDATE signalbox.job_history SET status = 'succeeded', items = 1, finished_at = now() WHERE id = %s", (run,)
    )
    assert stage.finish(job_id)["result"]["status"] == "skipped"
    assert count(stage.db, "effects") == 0


def test_a_task_that_must_be_alone_is_waited_for(stage: Stage) -> None:
    earlier = SIX - timedelta(hours=1)
    abandoned_run(stage.db, "note_alone", earlier, lease=timedelta(minutes=5), whole_task=True)
    job_id = begin(stage, "note_alone")
    assert stage.step(job_id)["status"] == "pending"
    stage.db.execute("UPDATE signalbox.job_locks SET expires_at = now()")
    assert stage.finish(job_id)["result"]["status"] == "succeeded"


def test_every_attempt_defaults_to_the_slot_when_the_job_became_due(stage: Stage) -> None:
    stage.db.execute("INSERT INTO troubles VALUES (1)")
    job_id = begin(stage, "fail_once", at=None)
    long_ago = datetime(2026, 3, 10, 6, 42, tzinfo=UTC)
    stage.db.execute("UPDATE signalbox.jobs SET queued_at = %s WHERE id = %s", (long_ago, job_id))
    stage.step(job_id)
    stage.db.execute("DELETE FROM troubles")
    job = stage.finish(job_id)
    assert job["result"]["slot"] == SIX.isoformat()
    assert [(run["slot"], run["status"]) for run in runs_of(stage.db, "fail_once")] == [
        (SIX, "failed"),
        (SIX, "succeeded"),
    ]


def test_failing_run_is_retried_and_finally_fails_with_its_tasks_error(stage: Stage) -> None:
    stage.db.execute("INSERT INTO troubles VALUES (1)")
    job = stage.finish(begin(stage, "fail_once"))
    assert (job["status"], job["attempts"], job["error_details"]["type"]) == ("failed", 5, "Trouble")
    assert [run["status"] for run in runs_of(stage.db, "fail_once")] == ["failed"] * 5
    assert count(stage.db, "signalbox.job_locks") == 0


def test_a_run_that_leaves_work_goes_on_as_the_jobs_next_piece(stage: Stage, invokes: AwsStandIn) -> None:
    rows = 2 * BATCH + 5
    stage.db.execute("INSERT INTO marks SELECT n FROM generate_series(1, %s) AS n", (rows,))
    job_id = begin(stage, "mark_rows")
    pieces = []
    for _ in range(50):
        # A moment beyond what the engine keeps back: enough for a batch or so.
        job = stage.step(job_id, seconds=20.05)
        pieces.append(job["status"])
        if job["status"] == "completed":
            break
    assert job["result"]["items"] == rows
    assert stage.db.execute("SELECT DISTINCT marked FROM marks").fetchall() == [(1,)]
    steps = [(run["step"], run["trigger"], run["more"]) for run in runs_of(stage.db, "mark_rows")]
    assert steps[0][:2] == (0, "manual")
    assert [step for step, _, _ in steps] == list(range(len(pieces)))
    assert all(trigger == "continuation" for _, trigger, _ in steps[1:])
    assert len(pieces) > 1
    assert not invokes.invoked  # the archiver is not asked to go on beside it


def test_work_without_end_fails_the_job_for_good(stage: Stage) -> None:
    stage.db.execute("INSERT INTO marks SELECT n FROM generate_series(1, %s) AS n", (BATCH,))
    job_id = begin(stage, "mark_rows")
    stage.db.execute("UPDATE signalbox.jobs SET cursor = %s WHERE id = %s", (Jsonb({"step": 100, "items": 9}), job_id))
    job = stage.step(job_id, seconds=20.0001)
    assert job["status"] == "failed", job["result"]
    assert "after 100 continuations" in job["error_details"]["message"]


@pytest.mark.parametrize(
    ("payload", "kind", "said"),
    [
        ({"task": "prune_histroy"}, "TaskUnknown", "did you mean 'prune_history'"),
        ({"task": "poll_data"}, "PayloadRefused", "run by the function poller and not as a job"),
        ({"task": "greet", "params": {"nme": "x"}}, "ParamsRefused", "nme"),
        ({"task": "note_run", "params": {"x": 1}}, "ParamsRefused", "takes no params"),
        ({"task": "note_run", "reference_time": "2190-01-01T00:00Z"}, "PayloadRefused", "future"),
    ],
)
def test_what_can_not_be_run_fails_for_good(stage: Stage, payload: dict[str, Any], kind: str, said: str) -> None:
    job_id = stage.submit("run_task", payload={"task": "note_run"})
    stage.db.execute("UPDATE signalbox.jobs SET payload = %s WHERE id = %s", (Jsonb(payload), job_id))  # by other code
    job = stage.finish(job_id)
    assert (job["status"], job["error_details"]["type"]) == ("failed", kind)
    assert said in job["error_details"]["message"]
    assert job["attempts"] == 1


@pytest.mark.parametrize(
    ("task", "error", "said"),
    [("prune_histroy", TaskUnknown, "did you mean 'prune_history'"), ("poll_data", PayloadRefused, "not as a job")],
)
def test_task_that_no_worker_can_run_is_refused_at_submit(
    stage: Stage, task: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        stage.submit("run_task", payload={"task": task})
    assert count(stage.db, "signalbox.jobs") == 0


def test_schedule_of_an_unknown_task_is_refused(stage: Stage) -> None:
    new = NewSchedule(name="nightly", job_type="run_task", payload={"task": "prune_histroy"}, cron="15 2 * * *")
    with pytest.raises(TaskUnknown, match="did you mean 'prune_history'"):
        create_schedule(stage.db, stage.job_types, new, by=Actor("jo"), now=SIX)


def test_a_time_out_that_leaves_no_time_is_refused(stage: Stage) -> None:
    job = stage.finish(stage.submit("run_task", payload={"task": "note_run"}, timeout=timedelta(seconds=10)))
    assert "leaves a task no time" in job["error_details"]["message"]


def test_two_jobs_for_one_slot_run_it_once(stage: Stage) -> None:
    one, other = begin(stage, "note_run"), begin(stage, "note_run")
    stage.work(one, other)
    assert {stage.job(one)["result"]["status"], stage.job(other)["result"]["status"]} == {"succeeded", "skipped"}
    assert count(stage.db, "effects") == 1
