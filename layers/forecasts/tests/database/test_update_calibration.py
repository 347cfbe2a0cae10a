"""update_calibration asks RunPod once a week to calibrate the tiles with enough samples, and never twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from threading import Barrier, Thread
from typing import Any
from uuid import UUID

import psycopg
import pytest

from forecasts.errors import RunPodDenied, RunPodRefused, RunPodUnavailable, TriggerUnconfirmed
from forecasts.runs.inference_payload import InferencePayload
from forecasts.runs.runpod import RunPod, open_runpod
from forecasts.tasks.update_calibration import update_calibration
from signalbox.errors import SettingsRefused
from signalbox.ledger.context import Context, Done
from signalbox.testing.rows import count, runs_of
from signalbox.testing.stage import NOON, Stage
from signalbox_laptop.stand_ins.faults import Fault
from stand_ins.runpod import RunPodStandIn
from tests.support.calibration_rows import coefficients, samples, verified_run
from tests.support.contexts import context_of
from tests.support.lost_session import lose_session

TASK = "update_calibration"
REQUESTS = "forecasts.calibration_requests"
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
WEEK, PERIOD = 7 * DAY, 30 * DAY
SLOT = datetime(2026, 3, 9, 4, 30, tzinfo=UTC)  # the day before NOON


@pytest.fixture(autouse=True)
def quick(runpod: RunPodStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start RunPod's stand-in for each test, without waits."""
    monkeypatch.setattr("forecasts.runs.runpod.FIRST_BACKOFF", 0.01)


@pytest.fixture
def run(db: psycopg.Connection) -> UUID:
    return verified_run(db)


def asked(runpod: RunPodStandIn) -> list[InferencePayload]:
    return [InferencePayload.model_validate(given) for given in runpod.inputs]


def tiles_asked(runpod: RunPodStandIn) -> list[tuple[str, ...]]:
    return [payload.tiles for payload in asked(runpod)]


def requests(db: psycopg.Connection) -> list[tuple[datetime, str | None]]:
    return db.execute(f"SELECT slot, external_id FROM {REQUESTS} ORDER BY slot").fetchall()


def test_tiles_with_enough_samples_are_calibrated(
    stage: Stage, db: psycopg.Connection, runpod: RunPodStandIn, run: UUID
) -> None:
    for tile, number in (("b", 100), ("a", 250), ("few", 10)):
        samples(db, run, tile, number)
    coefficients(db, "a", '{"gain": 1.5}')
    coefficients(db, "few")
    answer = stage.run(TASK)
    assert (answer["status"], answer["items"], answer["detail"]) == ("succeeded", 2, {})
    [payload] = asked(runpod)
    assert (payload.task_type, payload.model, payload.run_timestamp) == ("calibration", "nowcast", SLOT)
    assert payload.tiles == ("a", "b")
    assert payload.calibration_time_range is not None
    assert (payload.calibration_time_range.start, payload.calibration_time_range.end) == (NOON - PERIOD, NOON)
    row = db.execute(f"SELECT slot, tiles, coefficients_before, external_id FROM {REQUESTS}").fetchone()
    assert row == (SLOT, ["a", "b"], {"a": {"gain": 1.5}}, next(iter(runpod.jobs)))


def test_with_nothing_verified_runpod_is_not_asked(stage: Stage, db: psycopg.Connection, runpod: RunPodStandIn) -> None:
    answer = stage.run(TASK)
    assert (answer["status"], answer["items"]) == ("succeeded", 0)
    assert (list(runpod.calls), count(db, REQUESTS)) == ([], 0)


@pytest.mark.parametrize(("number", "enough"), [(99, False), (100, True), (101, True)])
def test_a_tile_needs_the_least_number_of_samples(
    stage: Stage, db: psycopg.Connection, run: UUID, number: int, enough: bool
) -> None:
    samples(db, run, "a", number)
    assert stage.run(TASK)["items"] == enough


def test_samples_add_up_over_results_but_not_over_metrics(
    stage: Stage, db: psycopg.Connection, runpod: RunPodStandIn, run: UUID
) -> None:
    for metric in ("rmse", "bias"):
        samples(db, run, "same", 60, metric=metric)
    for number in (60, 40):
        samples(db, run, "sum", number)
    stage.run(TASK)
    assert tiles_asked(runpod) == [("sum",)]


def test_samples_of_medium_range_runs_ask_for_no_calibration(
    stage: Stage, db: psycopg.Connection, runpod: RunPodStandIn, run: UUID
) -> None:
    medium_range = verified_run(db, "medium_range")
    samples(db, medium_range, "medium only", 250)
    for one in (run, medium_range):
        samples(db, one, "half each", 60)
    samples(db, run, "nowcast")
    assert stage.run(TASK)["items"] == 1
    assert [(payload.model, payload.tiles) for payload in asked(runpod)] == [("nowcast", ("nowcast",))]


def test_the_least_number_is_a_setting(
    stage: Stage, db: psycopg.Connection, run: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORECASTS_CALIBRATION_LEAST_SAMPLES", "7")
    samples(db, run, "a", 7)
    samples(db, run, "b", 6)
    assert stage.run(TASK)["items"] == 1


@pytest.mark.parametrize(
    ("at", "counts"),
    [
        (NOON - PERIOD - SECOND, False),
        (NOON - PERIOD, True),
        (NOON - PERIOD + SECOND, True),
        (NOON - SECOND, True),
        (NOON, False),
        (NOON + SECOND, False),
    ],
)
def test_the_period_has_its_first_second_and_not_its_last(
    stage: Stage, db: psycopg.Connection, run: UUID, at: datetime, counts: bool
) -> None:
    samples(db, run, "a", at=at)
    assert stage.run(TASK)["items"] == counts


def test_run_for_a_past_week_asks_as_that_week_would_have(
    stage: Stage, db: psycopg.Connection, runpod: RunPodStandIn, run: UUID
) -> None:
    then = NOON - 5 * WEEK
    samples(db, run, "then", at=then - SECOND)
    samples(db, run, "now")
    answer = stage.run(TASK, reference_time=then.isoformat())
    assert answer["items"] == 1
    [payload] = asked(runpod)
    assert (payload.tiles, payload.run_timestamp) == (("then",), SLOT - 5 * WEEK)
    assert payload.calibration_time_range is not None
    assert payload.calibration_time_range.end == then


def test_runpod_is_asked_once_a_slot_and_again_next_week(
    stage: Stage, db: psycopg.Connection, runpod: RunPodStandIn, run: UUID
) -> None:
    samples(db, run, "a")
    stage.run(TASK)
    answer = stage.run(TASK, NOON + DAY, force=True)
    assert (answer["items"], answer["reason"]) == (
        0,
        f"RunPod has been asked for this slot before, as job {next(iter(runpod.jobs))}",
    )
    assert len(asked(runpod)) == 1
    assert stage.run(TASK, NOON + WEEK)["items"] == 1
    assert [slot for slot, _ in requests(db)] == [SLOT, SLOT + WEEK]


@pytest.mark.parametrize(
    ("status", "error"), [(400, RunPodRefused), (401, RunPodDenied), (404, RunPodDenied), (503, RunPodUnavailable)]
)
def test_what_runpod_surely_did_not_take_is_asked_for_again(
    stage: Stage, db: psycopg.Connection, runpod: RunPodStandIn, run: UUID, status: int, error: type[Exception]
) -> None:
    samples(db, run, "a")
    runpod.faults.add(Fault(matching="/run", status=status))
    with pytest.raises(error):
        stage.run(TASK)
    assert requests(db) == []
    runpod.faults.replace([])
    assert stage.run(TASK)["items"] == 1
    assert tiles_asked(runpod) == [("a",)]


def test_unconfirmed_request_is_reported_and_not_repeated_that_week(
    stage: Stage, db: psycopg.Connection, runpod: RunPodStandIn, run: UUID, capsys: pytest.CaptureFixture[str]
) -> None:
    samples(db, run, "a")
    runpod.faults.add(Fault(matching="/run", lost=True))
    with pytest.raises(TriggerUnconfirmed):
        stage.run(TASK)
    assert '"CalibrationsUnconfirmed":[1.0]' in capsys.readouterr().out
    runpod.faults.replace([])
    answer = stage.run(TASK)
    assert (answer["items"], "may have accepted" in answer["reason"]) == (0, True)
    assert '"CalibrationsUnconfirmed":[1.0]' in capsys.readouterr().out
    assert (requests(db), len(asked(runpod))) == ([(SLOT, None)], 1)
    assert stage.run(TASK, NOON + WEEK)["items"] == 1


def test_the_request_is_in_the_table_before_runpod_hears_of_it(
    stage: Stage, db: psycopg.Connection, runpod: RunPodStandIn, run: UUID
) -> None:
    samples(db, run, "a")
    seen: list[Any] = []
    runpod.during = lambda: seen.append(requests(db))
    stage.run(TASK)
    assert seen == [[(SLOT, None)]]


def test_an_id_survives_a_database_that_goes_away_while_runpod_answers(
    stage: Stage, dsn: str, db: psycopg.Connection, runpod: RunPodStandIn, run: UUID
) -> None:
    samples(db, run, "a")
    runpod.during = lambda: lose_session(dsn)
    assert stage.run(TASK)["items"] == 1
    assert requests(db) == [(SLOT, next(iter(runpod.jobs)))]


def test_a_crash_between_runpods_answer_and_its_row_asks_no_second_time(
    stage: Stage, db: psycopg.Connection, runpod: RunPodStandIn, run: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples(db, run, "a")
    with monkeypatch.context() as patched:
        patched.setattr("forecasts.tasks.update_calibration.through_restart", crash)
        with pytest.raises(RuntimeError, match="crashed"):
            stage.run(TASK)
    assert "may have accepted" in stage.run(TASK)["reason"]
    assert (requests(db), len(asked(runpod))) == ([(SLOT, None)], 1)
    assert [row["status"] for row in runs_of(db, TASK)] == ["failed", "succeeded"]


def crash(*_: object) -> None:
    raise RuntimeError("crashed")


def test_two_workers_in_one_slot_ask_once(
    stage: Stage, db: psycopg.Connection, runpod: RunPodStandIn, run: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Test without the slot's lease, as when it has expired: both find that nothing was asked for yet."""
    samples(db, run, "a")
    gate, items = Barrier(2, timeout=30), list[int]()

    def meet(context: Context) -> RunPod:
        gate.wait()
        return open_runpod(context)

    def work() -> None:
        own = stage.another()
        outcome = update_calibration(context_of(own, TASK, NOON))
        assert isinstance(outcome, Done)
        items.append(outcome.items)

    monkeypatch.setattr("forecasts.tasks.update_calibration.open_runpod", meet)
    threads = [Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (sorted(items), tiles_asked(runpod)) == ([0, 1], [("a",)])
    assert requests(db) == [(NOON, next(iter(runpod.jobs)))]


def test_run_without_time_for_an_answer_leaves_asking_to_a_continuation(
    stage: Stage, db: psycopg.Connection, runpod: RunPodStandIn, run: UUID
) -> None:
    samples(db, run, "a")
    assert stage.run(TASK, seconds=20)["more"] is True
    assert (requests(db), list(runpod.calls)) == ([], [])
    assert [answer["items"] for answer in stage.deliver()] == [1]


def test_without_an_endpoint_nothing_is_noted(
    stage: Stage, db: psycopg.Connection, run: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples(db, run, "a")
    monkeypatch.setenv("FORECASTS_RUNPOD_ENDPOINT_ID", "")
    with pytest.raises(SettingsRefused, match="FORECASTS_RUNPOD_ENDPOINT_ID"):
        stage.run(TASK)
    assert requests(db) == []
