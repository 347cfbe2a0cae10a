"""Each forecast run that takes too long gets the end that RunPod's answer calls for, once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from forecasts.runs.runpod import RunPodState
from forecasts.tasks.reconcile_forecasts import NextStep, decide, reconcile_forecasts
from signalbox.testing.stage import NOON, Stage
from signalbox_laptop.stand_ins.faults import Fault
from stand_ins.runpod import RunPodStandIn
from tests.support.at_once import at_once
from tests.support.contexts import context_of
from tests.support.forecast_rows import forecast_run

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
COLUMNS = "status, failure_reason, external_id, retry_count"


@dataclass(frozen=True, slots=True)
class World:
    """Run the reconciling among its surroundings."""

    stage: Stage
    db: psycopg.Connection
    runpod: RunPodStandIn
    monkeypatch: pytest.MonkeyPatch

    def reconcile(self, at: datetime = NOON, *, seconds: float = 60, **fields: Any) -> dict[str, Any]:
        answer = self.stage.run("reconcile_forecasts", at, seconds=seconds, force=True, **fields)
        assert answer["status"] == "succeeded"
        return answer

    def run(self, state: str | None = "IN_PROGRESS", *, age: timedelta = 4 * HOUR, **columns: Any) -> UUID:
        """Add a run that began this long before noon; the state is its job's at RunPod, None for one without a job."""
        error = columns.pop("error", None)
        if state is not None:
            columns["external_id"] = self.runpod.add(state, error=error)
        at = columns.pop("run_timestamp", NOON - 6 * HOUR - len(self.runpod.jobs) * MINUTE)
        references = columns.pop("input_references", [])
        run = forecast_run(self.db, at, **{"started_at": NOON - age} | columns)
        self.db.execute("UPDATE forecasts.forecast_runs SET input_references = %s WHERE id = %s", (references, run))
        return run

    def row(self, run: UUID, columns: str = COLUMNS) -> Any:
        row = self.db.execute(f"SELECT {columns} FROM forecasts.forecast_runs WHERE id = %s", (run,)).fetchone()
        assert row is not None
        return row[0] if len(row) == 1 else row

    def job(self, run: UUID) -> dict[str, Any]:
        return self.runpod.jobs[self.row(run, "external_id")]

    @property
    def taken(self) -> int:
        """Count the runs that RunPod was asked for."""
        return sum(given is not None for given in self.runpod.inputs)


@pytest.fixture
def world(stage: Stage, db: psycopg.Connection, runpod: RunPodStandIn, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr("forecasts.runs.runpod.FIRST_BACKOFF", 0.01)
    return World(stage, db, runpod, monkeypatch)


# ---- The end of a run.


@pytest.mark.parametrize("state", ["IN_QUEUE", "IN_PROGRESS", "RUNNING", "A_NEW_ONE"])
def test_a_run_that_hangs_is_cancelled_and_failed(world: World, state: str) -> None:
    run = world.run(state)
    answer = world.reconcile()
    assert (answer["items"], answer["detail"]) == (1, {"timed_out": 1})
    assert world.row(run)[:2] == ("failed", "Timeout")
    assert world.job(run)["status"] == "CANCELLED"
    assert world.taken == 0


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED", "TIMED_OUT"])
def test_a_run_that_failed_at_runpod_is_tried_again(world: World, state: str) -> None:
    references = ["s3://noaa/gfs.20260310/06/atmos/x"]
    run = world.run(state, retry_count=2, input_references=references, storage_prefix="here/")
    old = world.row(run, "external_id")
    assert world.reconcile()["detail"] == {"retried": 1}
    status, reason, external_id, retry_count = world.row(run)
    assert (status, reason, retry_count) == ("running", None, 3)
    assert external_id != old
    given = world.job(run)["input"]
    assert (given["forecast_run_id"], given["storage_prefix"]) == (str(run), "here/")
    assert given["input_config"]["references"] == references
    assert world.row(run, "started_at") == NOON


def test_a_run_that_runpod_lost_is_tried_again(world: World) -> None:
    run = world.run(None, external_id="expired")
    assert world.reconcile()["detail"] == {"retried": 1}
    assert world.row(run)[3] == 1


@pytest.mark.parametrize(
    ("state", "error", "reason"),
    [("FAILED", "out of memory", "FAILED: out of memory"), ("TIMED_OUT", None, "TIMED_OUT")],
)
def test_after_three_retries_a_run_fails_with_its_reason(
    world: World, state: str, error: str | None, reason: str
) -> None:
    run = world.run(state, error=error, retry_count=3)
    assert world.reconcile()["detail"] == {"failed": 1}
    assert (world.row(run)[:2], world.row(run)[3], world.taken) == (("failed", reason), 3, 0)


def test_a_lost_run_fails_after_three_retries(world: World) -> None:
    run = world.run(None, external_id="expired", retry_count=3)
    world.reconcile()
    assert world.row(run)[:2] == ("failed", "LOST")


def test_always_failing_run_is_tried_three_times_over_hours_then_fails(world: World) -> None:
    run = world.run("FAILED")
    for hours in range(0, 24, 4):
        world.reconcile(NOON + hours * HOUR)
        for job in world.runpod.jobs:
            world.runpod.tell(job, "FAILED", "no luck")
    assert (world.row(run)[:2], world.row(run)[3], world.taken) == (("failed", "FAILED: no luck"), 3, 3)


def test_a_run_that_runpod_completed_is_completed(world: World) -> None:
    run = world.run("COMPLETED")
    assert world.reconcile()["detail"] == {"completed": 1}
    assert world.row(run, "status, completed_at, failure_reason") == ("complete", NOON, None)


def test_a_run_that_was_never_confirmed_fails_without_asking_runpod(world: World) -> None:
    world.runpod.faults.add(Fault(status=503))
    run = world.run(None)
    assert world.reconcile()["detail"] == {"unconfirmed": 1}
    assert world.row(run)[:2] == ("failed", "Unconfirmed")
    assert not world.runpod.calls


def test_nothing_overdue_is_nothing_to_do(world: World) -> None:
    for status in ("complete", "deleted"):
        world.run(status=status)
    world.run(status="failed", failure_reason="Timeout")
    answer = world.reconcile()
    assert (answer["items"], answer["detail"]) == (0, {})
    assert not world.runpod.calls


def test_row_without_a_start_counts_from_its_creation(world: World) -> None:
    old = world.run("COMPLETED", started_at=None, created_at=NOON - 4 * HOUR)
    new = world.run("COMPLETED", started_at=None, created_at=NOON - HOUR)
    world.reconcile()
    assert (world.row(old)[0], world.row(new)[0]) == ("complete", "running")


@pytest.mark.parametrize(
    ("model", "limit"), [("nowcast", timedelta(minutes=20)), ("medium_range", timedelta(minutes=180))]
)
@pytest.mark.parametrize("state", ["COMPLETED", None])
@pytest.mark.parametrize("live", [True, False])
def test_a_second_decides_whether_a_run_is_beyond_its_models_time(
    world: World, model: str, limit: timedelta, state: str | None, live: bool
) -> None:
    now = datetime.now(UTC).replace(microsecond=0) if live else NOON
    runs = [
        world.run(state, model=model, started_at=now - limit + early * SECOND, run_timestamp=now + early * SECOND)
        for early in (1, 0, -1)
    ]
    world.reconcile(now)
    assert [world.row(run)[0] == "running" for run in runs] == [True, True, False]


def test_the_times_are_settings(world: World) -> None:
    world.monkeypatch.setenv("FORECASTS_TIMEOUT_NOWCAST_MINUTES", "30")
    world.monkeypatch.setenv("FORECASTS_MOST_RETRIES", "0")
    young = world.run("FAILED", model="nowcast", age=30 * MINUTE)
    old = world.run("FAILED", model="nowcast", age=31 * MINUTE)
    world.reconcile()
    assert (world.row(young)[0], world.row(old)[:2]) == ("running", ("failed", "FAILED"))


@pytest.mark.parametrize("hung", [True, False])
def test_each_state_leads_to_one_step_and_count_stays_within_limit(hung: bool) -> None:
    steps = {state: decide(state, 0, 3, hung=hung) for state in RunPodState}
    ended = NextStep.END if hung else NextStep.RETRY
    assert steps == {
        RunPodState.UNFINISHED: NextStep.CANCEL,
        RunPodState.COMPLETED: NextStep.COMPLETE,
        RunPodState.FAILED: ended,
        RunPodState.CANCELLED: ended,
        RunPodState.TIMED_OUT: ended,
        RunPodState.LOST: ended,
    }
    assert [decide(RunPodState.FAILED, count, 3, hung=False) for count in (2, 3, 4)] == [
        NextStep.RETRY,
        NextStep.FAIL,
        NextStep.FAIL,
    ]


# ---- The retry's payload.


def test_a_nowcasts_retry_takes_the_calibration_of_today(world: World) -> None:
    world.db.execute(
        "INSERT INTO forecasts.calibration_coefficients (tile_id, coefficients) VALUES ('a', %s)", (Jsonb({"b": 1}),)
    )
    run = world.run("FAILED", model="nowcast", input_references=["s3://x"])
    world.reconcile()
    assert world.job(run)["input"]["input_config"] == {"references": ["s3://x"], "calibration": {"a": {"b": 1}}}


def test_row_without_references_is_retried_with_the_likely_ones(world: World) -> None:
    cycle = world.run("FAILED", run_timestamp=NOON - 6 * HOUR)
    nowcast = world.run("FAILED", model="nowcast", run_timestamp=NOON - 5 * HOUR)
    world.reconcile()
    assert world.job(cycle)["input"]["input_config"]["references"] == [
        "s3://noaa-gfs-bdp-pds/gfs.20260310/06/atmos/gfs.t06z.pgrb2.0p25.f"
    ]
    assert world.job(cycle)["input"]["storage_prefix"] == world.row(cycle, "storage_prefix")
    assert world.job(nowcast)["input"]["input_config"]["references"] == [
        "s3://noaa-goes19/ABI-L2-CMIPF/2026/069/07/",
        "s3://noaa-mrms-pds/CONUS/PrecipRate_00.00/20260310/MRMS_PrecipRate_00.00_20260310-07",
    ]


# ---- RunPod in trouble.


def test_run_without_runpods_answer_is_left_alone_and_others_continue(
    world: World, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    dark = world.run("FAILED", age=6 * HOUR)
    good = world.run("COMPLETED", age=5 * HOUR)
    before = world.row(dark)
    world.runpod.faults.add(Fault(matching=world.row(dark, "external_id"), status=500))
    answer = world.reconcile()
    assert (answer["items"], answer["detail"]) == (1, {"unreachable": 1, "completed": 1})
    assert world.row(dark) == before
    assert world.row(good)[0] == "complete"
    [report] = [vars(record) for record in caplog.records if record.message == "forecast.unreachable"]
    assert (report["forecast_run_id"], report["why"]) == (str(dark), "RunPod still fails after 4 tries: status 500")
    assert '"ForecastsUnreachable":[1.0]' in capsys.readouterr().out


def test_when_runpod_is_away_all_is_left_alone(world: World) -> None:
    runs = [world.run(state, age=age * HOUR) for age, state in enumerate(("FAILED", "IN_PROGRESS"), start=5)]
    before = [world.row(run) for run in runs]
    world.runpod.stop()
    answer = world.reconcile()
    assert (answer["items"], answer["detail"], "more" in answer) == (0, {"unreachable": 2}, False)
    assert [world.row(run) for run in runs] == before


@pytest.mark.parametrize("status", [429, 503, 401])
def test_a_retry_that_runpod_does_not_take_was_none(world: World, status: int) -> None:
    run = world.run("FAILED", retry_count=1)
    everything = f"{COLUMNS}, started_at, triggered_at"
    before = world.row(run, everything)
    world.runpod.faults.add(Fault(matching="/run", status=status, retry_after="600"))
    assert world.reconcile()["detail"] == {"unreachable": 1}
    assert world.row(run, everything) == before
    world.runpod.faults.replace([])
    assert world.reconcile()["detail"] == {"retried": 1}


def test_a_retry_that_runpod_refuses_fails_and_stops_no_other(world: World) -> None:
    run = world.run("FAILED", age=6 * HOUR)
    other = world.run("FAILED", age=5 * HOUR)
    world.runpod.faults.add(Fault(matching=str(run), status=400))
    assert world.reconcile()["detail"] == {"refused": 1, "retried": 1}
    assert (world.row(run)[:2], world.row(other)[0]) == (("failed", "TriggerRefused"), "running")


def test_a_retry_that_runpod_may_have_taken_is_never_sent_again(world: World) -> None:
    run = world.run("FAILED")
    world.runpod.faults.add(Fault(matching="/run", times=1, lost=True))
    assert world.reconcile()["detail"] == {"in_doubt": 1}
    assert world.row(run) == ("running", None, None, 1)
    world.reconcile(NOON + 4 * HOUR)
    assert (world.row(run)[:2], world.taken) == (("failed", "Unconfirmed"), 1)


def test_a_hung_run_that_can_not_be_cancelled_is_tried_again_later(world: World) -> None:
    run = world.run("IN_PROGRESS")
    world.runpod.faults.add(Fault(matching="/cancel", status=500))
    assert world.reconcile()["detail"] == {"unreachable": 1}
    assert world.row(run)[0] == "running"
    world.runpod.faults.replace([])
    assert world.reconcile()["detail"] == {"timed_out": 1}


# ---- Crashes and doubles.


def test_crash_after_cancelling_ends_as_timeout_without_retry(world: World) -> None:
    run = world.run("IN_PROGRESS")
    world.runpod.faults.add(Fault(matching="/cancel", lost=True))
    world.reconcile()
    assert (world.job(run)["status"], world.row(run)[0]) == ("CANCELLED", "running")
    world.runpod.faults.replace([])
    assert world.reconcile()["detail"] == {"timed_out": 1}
    assert (world.row(run)[:2], world.taken) == (("failed", "Timeout"), 0)


def test_a_hung_run_that_completes_before_it_is_cancelled_is_complete(world: World) -> None:
    run = world.run("IN_PROGRESS")
    world.runpod.faults.add(Fault(matching="/cancel", status=500))
    world.reconcile()
    world.runpod.tell(world.row(run, "external_id"), "COMPLETED")
    world.reconcile()
    assert world.row(run)[:2] == ("complete", None)


def test_crash_between_retry_and_its_id_is_given_up_as_unconfirmed(world: World) -> None:
    run = world.run("FAILED")

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with world.monkeypatch.context() as broken:
        broken.setattr("forecasts.runs.store.confirm", crash)
        with pytest.raises(KeyboardInterrupt):
            world.reconcile()
    world.db.execute("DELETE FROM signalbox.job_locks")
    assert world.row(run) == ("running", None, None, 1)
    world.reconcile(NOON + 4 * HOUR)
    assert (world.row(run)[:2], world.taken) == (("failed", "Unconfirmed"), 1)


def test_run_completed_while_runpod_is_asked_stays_completed(world: World) -> None:
    run = world.run("FAILED")
    world.runpod.during = lambda: world.db.execute("UPDATE forecasts.forecast_runs SET status = 'complete'")
    assert world.reconcile()["detail"] == {"overtaken": 1}
    assert (world.row(run)[0], world.taken) == ("complete", 0)


@pytest.mark.parametrize(
    "meanwhile",
    [
        "external_id = 'the retry''s', triggered_at = now()",
        "external_id = NULL, triggered_at = now()",
        "failure_reason = 'Timeout'",  # and about to fail it: this other one cancelled the job
        "status = 'failed', failure_reason = 'Timeout'",
    ],
)
@pytest.mark.parametrize("state", ["FAILED", "CANCELLED"])
def test_a_run_on_which_another_reconciling_was_quicker_is_left_to_it(world: World, meanwhile: str, state: str) -> None:
    run = world.run(state)
    act = f"UPDATE forecasts.forecast_runs SET {meanwhile}"
    world.runpod.during = lambda: world.db.execute(act)
    answer = world.reconcile()
    assert (answer["items"], answer["detail"], world.taken) == (0, {"overtaken": 1}, 0)
    assert world.row(run)[3] == 0


def test_an_attempt_that_another_reconciling_is_giving_up_is_not_waited_for(world: World, dsn: str) -> None:
    locked = world.run(None)
    free = world.run(None, run_timestamp=NOON)
    world.stage.app.resources.database.connection().execute("SET lock_timeout = '2s'")
    with psycopg.connect(dsn) as other:
        other.execute("SELECT FROM forecasts.forecast_runs WHERE id = %s FOR UPDATE", (locked,))
        assert world.reconcile()["detail"] == {"unconfirmed": 1}
    assert (world.row(locked)[0], world.row(free)[0]) == ("running", "failed")


def test_reconcilings_at_once_act_once_on_each_run(world: World) -> None:
    failed = [world.run("FAILED") for _ in range(6)]
    hung = [world.run("IN_PROGRESS") for _ in range(6)]
    done = [world.run("COMPLETED") for _ in range(3)]
    lost = [world.run(None, external_id=f"expired-{n}", run_timestamp=NOON + n * MINUTE) for n in range(3)]
    unconfirmed = [world.run(None, run_timestamp=NOON - n * MINUTE) for n in range(1, 4)]

    counts = together(world, 4)

    assert counts == {"retried": 9, "timed_out": 6, "completed": 3, "unconfirmed": 3}
    assert [world.row(run)[0::3] for run in failed + lost] == [("running", 1)] * 9
    assert [world.row(run)[:2] for run in hung] == [("failed", "Timeout")] * 6
    assert [world.row(run)[0] for run in done] == ["complete"] * 3
    assert [world.row(run)[:2] for run in unconfirmed] == [("failed", "Unconfirmed")] * 3
    assert world.taken == 9


def test_the_work_goes_in_batches_and_on_after_the_budget(world: World) -> None:
    world.db.execute(
        "INSERT INTO forecasts.forecast_runs (model, run_timestamp, started_at) "
        "SELECT 'nowcast', %(now)s - n * interval '10 min', %(now)s - n * interval '10 min' "
        "FROM generate_series(10, 259) AS n",
        {"now": NOON},
    )
    runs = [world.run("COMPLETED") for _ in range(120)]
    first = world.reconcile(seconds=10 + 26.0)
    assert (first["detail"], first["more"]) == ({"unconfirmed": 250}, True)
    [last] = world.stage.deliver()
    assert last["detail"] == {"completed": 120}
    assert {world.row(run)[0] for run in runs} == {"complete"}


# ---- Past days.


def test_a_past_reference_time_ends_what_was_overdue_then(world: World) -> None:
    then = world.run("COMPLETED", age=4 * HOUR)
    later = world.run("COMPLETED", age=2 * HOUR)
    world.reconcile(NOON + 48 * HOUR, reference_time=NOON.isoformat())
    assert (world.row(then)[0], world.row(later)[0]) == ("complete", "running")


def test_job_just_triggered_for_a_past_slot_does_not_count_as_hung(world: World) -> None:
    now = datetime.now(UTC)
    fresh = world.run("IN_PROGRESS", triggered_at=now - HOUR)
    world.reconcile(now)
    assert world.row(fresh)[0] == "running"
    world.db.execute("UPDATE forecasts.forecast_runs SET triggered_at = %s", (now - 4 * HOUR,))
    world.reconcile(now)
    assert world.row(fresh)[:2] == ("failed", "Timeout")


def together(world: World, times: int) -> dict[str, int]:
    """Run this many reconcilings at once, without the engine's guard, and add up what they report."""
    contexts = [context_of(world.stage.another(), "reconcile_forecasts", NOON) for _ in range(times)]
    counts = [done.detail or {} for done in at_once(*(partial(reconcile_forecasts, context) for context in contexts))]
    names = {name for count in counts for name in count} - {"overtaken"}
    return {name: sum(count.get(name, 0) for count in counts) for name in names}
