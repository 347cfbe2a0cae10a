"""update_calibration reviews what the workers brought back: what waits, what is wrong, and what leapt."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from signalbox.testing.stage import NOON, Stage
from signalbox_laptop.stand_ins.faults import Fault
from stand_ins.runpod import RunPodStandIn
from tests.support.calibration_rows import candidate, coefficients, samples, verified_run

TASK = "update_calibration"
SECOND, WEEK = timedelta(seconds=1), timedelta(days=7)


@pytest.fixture
def run(db: psycopg.Connection, runpod: RunPodStandIn) -> UUID:
    """Make the run of a week in which the tile `a` is calibrated."""
    run = verified_run(db)
    samples(db, run, "a")
    return run


def review(stage: Stage, **fields: Any) -> dict[str, Any]:
    detail: dict[str, Any] = stage.run(TASK, force=True, **fields)["detail"]
    return detail


def leapt(stage: Stage, weeks: int) -> Any:
    """Return what the run this many weeks later says of coefficients that changed too far."""
    return stage.run(TASK, NOON + weeks * WEEK)["detail"].get("leapt_coefficients")


def test_a_candidate_is_listed_with_its_change_and_its_reason(
    stage: Stage, db: psycopg.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    coefficients(db, "a", '{"gain": 1, "bias": 2}')
    made = candidate(db, "a", '{"gain": 1.1, "bias": 3}', reason="bias moved")
    [told] = review(stage)["candidates"]
    assert told == {
        "candidate_id": made,
        "tile_id": "a",
        "verdict": "waits",
        "largest_change": "50.00%",
        "reason": "bias moved",
    }
    assert '"CalibrationCandidatesWaiting":[1.0]' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("proposed", "verdict"),
    [
        ("1.1499999999", "misfiled"),
        ("1.15", "waits"),
        ("1.1500000001", "waits"),
        ("0.8500000001", "misfiled"),
        ("0.85", "waits"),
        ("1", "misfiled"),
    ],
)
def test_change_below_bound_was_misfiled_and_one_at_bound_was_not(
    stage: Stage, db: psycopg.Connection, proposed: str, verdict: str
) -> None:
    coefficients(db, "a")
    candidate(db, "a", f'{{"gain": {proposed}}}')
    assert [told["verdict"] for told in review(stage)["candidates"]] == [verdict]


def test_the_bound_is_a_setting(stage: Stage, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORECASTS_CALIBRATION_BOUND", "0.3")
    coefficients(db, "a")
    candidate(db, "a", '{"gain": 1.29}')
    candidate(db, "a", '{"gain": 1.3}')
    assert sorted(told["verdict"] for told in review(stage)["candidates"]) == ["misfiled", "waits"]


@pytest.mark.parametrize(
    ("current", "proposed", "change"),
    [
        (None, '{"gain": 1}', None),
        ('{"gain": "rubbish"}', '{"gain": 1}', None),
        ('{"bias": 1}', '{"gain": 1}', "incomparable"),
        ('{"gain": 0}', '{"gain": 0.1}', "incomparable"),
        ('{"gain": 1e-300}', '{"gain": 1e300}', "over 100000%"),
    ],
)
def test_a_candidate_that_can_hardly_be_compared_waits(
    stage: Stage, db: psycopg.Connection, current: str | None, proposed: str, change: str | None
) -> None:
    if current is not None:
        coefficients(db, "a", current)
    candidate(db, "a", proposed)
    [told] = review(stage)["candidates"]
    assert (told["verdict"], told["largest_change"]) == ("waits", change)


def test_invalid_or_misfiled_candidate_blocks_no_other_and_no_request(
    stage: Stage, db: psycopg.Connection, run: UUID, runpod: RunPodStandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    coefficients(db, "a")
    proposed = {"good": '{"gain": 2}', "small": '{"gain": 1.01}', "text": '{"gain": "2"}', "list": "[1]"}
    proposed["deep"] = "[" * 2000 + "]" * 2000
    made = {candidate(db, "a", text): name for name, text in proposed.items()}
    answer = stage.run(TASK)
    verdicts = {made[told["candidate_id"]]: told["verdict"] for told in answer["detail"]["candidates"]}
    expected = {"good": "waits", "small": "misfiled", "text": "invalid", "list": "invalid", "deep": "invalid"}
    assert verdicts == expected
    out = capsys.readouterr().out
    assert '"CalibrationCandidatesInvalid":[3.0]' in out
    assert '"CalibrationCandidatesMisfiled":[1.0]' in out
    assert (answer["items"], len(runpod.inputs)) == (1, 1)


def test_reviewed_candidates_and_later_ones_are_not_listed(stage: Stage, db: psycopg.Connection) -> None:
    candidate(db, "a", '{"gain": 1}', reviewed=True)
    candidate(db, "b", '{"gain": 1}', created_at=NOON + SECOND)
    made = candidate(db, "c", '{"gain": 1}', created_at=NOON)
    assert [told["candidate_id"] for told in review(stage)["candidates"]] == [made]
    assert review(stage, reference_time=(NOON - SECOND).isoformat()) == {}


def test_of_many_candidates_all_are_counted_and_a_hundred_listed(
    stage: Stage, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("forecasts.quality.calibration_review.PAGE", 7)
    for number in range(101):
        candidate(db, f"tile-{number}", '{"gain": 1}')
    detail = review(stage)
    assert len({told["candidate_id"] for told in detail["candidates"]}) == 100
    assert detail["unlisted"] == 1
    assert '"CalibrationCandidatesWaiting":[101.0]' in capsys.readouterr().out


def test_a_hundred_candidates_are_all_listed(stage: Stage, db: psycopg.Connection) -> None:
    for number in range(100):
        candidate(db, f"tile-{number}", '{"gain": 1}')
    detail = review(stage)
    assert (len(detail["candidates"]), "unlisted" in detail) == (100, False)


def test_tiles_with_rubbish_for_coefficients_are_named_and_keep_no_other(
    stage: Stage, db: psycopg.Connection, run: UUID, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("forecasts.quality.calibration_review.PAGE", 2)
    for tile, text in {"a": '{"gain": 1}', "b": "{}", "c": '{"gain": null}', "d": '{"gain": 2}', "e": "[]"}.items():
        coefficients(db, tile, text)
    answer = stage.run(TASK)
    assert (answer["items"], answer["detail"]) == (1, {"invalid_coefficients": ["b", "c", "e"]})
    assert '"CalibrationCoefficientsInvalid":[3.0]' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("after", "expected"), [("1.15", ["a"]), ("0.85", ["a"]), ("1.1499999999", None), ("0.8500000001", None)]
)
def test_coefficients_that_a_worker_changed_by_the_bound_or_more_have_leapt(
    stage: Stage,
    db: psycopg.Connection,
    run: UUID,
    capsys: pytest.CaptureFixture[str],
    after: str,
    expected: list[str] | None,
) -> None:
    coefficients(db, "a")
    assert leapt(stage, 0) is None
    coefficients(db, "a", f'{{"gain": {after}}}')
    assert leapt(stage, 1) == expected
    assert ('"CalibrationCoefficientsLeapt":[1.0]' in capsys.readouterr().out) == (expected is not None)


def test_leap_is_seen_without_the_workers_time_of_writing(stage: Stage, db: psycopg.Connection, run: UUID) -> None:
    coefficients(db, "a")
    leapt(stage, 0)
    db.execute("UPDATE forecasts.calibration_coefficients SET coefficients = '{\"gain\": 2}'")
    assert leapt(stage, 1) == ["a"]


def test_coefficients_have_not_leapt_if_somebody_looked_at_the_candidate_since(
    stage: Stage, db: psycopg.Connection, run: UUID
) -> None:
    samples(db, run, "b")
    for tile in ("a", "b"):
        coefficients(db, tile)
    candidate(db, "b", '{"gain": 2}', reviewed=True)  # before RunPod was asked
    leapt(stage, 0)
    candidate(db, "a", '{"gain": 2}', reviewed=True)
    for tile in ("a", "b"):
        coefficients(db, tile, '{"gain": 2}')
    assert leapt(stage, 1) == ["b"]


def test_small_weekly_steps_are_no_leap_even_for_a_past_week(stage: Stage, db: psycopg.Connection, run: UUID) -> None:
    for week, gain in enumerate(("1", "1.1", "1.2", "1.3")):
        coefficients(db, "a", f'{{"gain": {gain}}}')
        assert leapt(stage, week) is None
    coefficients(db, "a", '{"gain": 1.4}')
    assert stage.run(TASK, NOON + WEEK, force=True)["detail"] == {}


def test_a_leap_stays_in_sight_while_runpod_refuses(
    stage: Stage, db: psycopg.Connection, run: UUID, runpod: RunPodStandIn
) -> None:
    coefficients(db, "a")
    leapt(stage, 0)
    coefficients(db, "a", '{"gain": 2}')
    runpod.faults.add(Fault(matching="/run", status=400))
    with pytest.raises(Exception, match="refuses"):
        leapt(stage, 1)
    runpod.faults.replace([])
    assert leapt(stage, 1) == ["a"]


def test_first_coefficients_and_those_that_were_or_became_rubbish_have_not_leapt(
    stage: Stage, db: psycopg.Connection, run: UUID
) -> None:
    for tile in ("b", "c"):
        samples(db, run, tile)
    coefficients(db, "b", "[]")
    coefficients(db, "c")
    leapt(stage, 0)
    coefficients(db, "a")
    coefficients(db, "b")
    coefficients(db, "c", "[]")
    assert stage.run(TASK, NOON + WEEK)["detail"] == {"invalid_coefficients": ["c"]}


def test_looking_through_changes_nothing(stage: Stage, db: psycopg.Connection) -> None:
    coefficients(db, "a", "[]")
    candidate(db, "a", "[]")
    before = contents(db)
    review(stage)
    assert contents(db) == before


def contents(db: psycopg.Connection) -> list[Any]:
    tables = ("calibration_coefficients", "calibration_candidates")
    return [db.execute(f"SELECT * FROM forecasts.{table}").fetchall() for table in tables]
