"""verification checks the canaries: each that is wrong is reported, once a slot."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest

from signalbox.testing.rows import count, runs_of
from signalbox.testing.stage import NOON, Stage
from tests.support.canary_rows import canary, expecting, mismatches

TASK = "verification"
DAY, HOUR, SECOND = timedelta(days=1), timedelta(hours=1), timedelta(seconds=1)


def test_wrong_canary_is_counted_and_noted(
    stage: Stage, db: psycopg.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    silent, loud = canary(db, expecting(True)), canary(db, expecting(False), is_triggered=True)
    canary(db, expecting(True), is_triggered=True)
    canary(db, expecting(False))
    canary(db, {"expected_triggered": True})  # not a canary
    answer = stage.run(TASK)
    assert answer["detail"] | {"canaries": 4, "mismatched": 2, "unreadable": 0} == answer["detail"]
    slot = NOON.replace(hour=3).isoformat()
    assert dict(mismatches(db)) == {
        str(silent): {"slot": slot, "expected": True, "triggered": False},
        str(loud): {"slot": slot, "expected": False, "triggered": True},
    }
    assert '"CanaryMismatch":[2.0]' in capsys.readouterr().out


@pytest.mark.parametrize("columns", [{"status": "paused", "paused_at": NOON}, {"created_at": NOON + SECOND}])
def test_a_canary_that_does_not_sing_is_not_heard(
    stage: Stage, db: psycopg.Connection, columns: dict[str, Any]
) -> None:
    canary(db, expecting(True), **columns)
    assert stage.run(TASK)["detail"]["canaries"] == 0


@pytest.mark.parametrize("expected", ["yes", 1, None, [], {}, "true"])
def test_a_canary_with_rubbish_in_it_is_reported_and_keeps_no_other(
    stage: Stage, db: psycopg.Connection, capsys: pytest.CaptureFixture[str], expected: Any
) -> None:
    canary(db, expecting(expected))
    canary(db, {"system_role": "canary"})
    canary(db, ["canary"])
    odd = canary(db, expecting(True))
    answer = stage.run(TASK)
    assert (answer["detail"]["mismatched"], answer["detail"]["unreadable"]) == (1, 2)
    assert [entity for entity, _ in mismatches(db)] == [str(odd)]
    assert '"CanaryUnreadable":[2.0]' in capsys.readouterr().out


def test_a_mismatch_is_noted_once_a_slot_and_again_in_the_next(stage: Stage, db: psycopg.Connection) -> None:
    canary(db, expecting(True))
    stage.run(TASK)
    stage.run(TASK, force=True)
    stage.run(TASK, NOON + HOUR, force=True)
    assert len(mismatches(db)) == 1
    stage.run(TASK, NOON + DAY)
    assert len(mismatches(db)) == 2
    assert {row["status"] for row in runs_of(db, TASK)} == {"succeeded"}
    assert count(db, "forecasts.verification_requests") == 0
