"""Runs whose worker vanished are ended, and requested again with the same fields."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from signalbox.testing.rows import abandoned_run, count, lost_run, runs_of, skipped_run, succeeded_run
from signalbox.testing.stage import NOON, Stage

GONE = timedelta(seconds=-1)
HOUR = timedelta(hours=1)
pytestmark = pytest.mark.usefixtures("effects")


def sweep(stage: Stage) -> dict[str, Any]:
    return stage.run("sweep_runs", NOON, force=True)


def test_a_run_whose_lease_ran_out_is_ended_and_its_slot_runs_again(stage: Stage, db: psycopg.Connection) -> None:
    abandoned_run(db, "note_run", NOON, lease=GONE)

    assert sweep(stage)["items"] == 2
    assert [answer["status"] for answer in stage.deliver()] == ["succeeded"]

    lost, again = runs_of(db, "note_run")
    assert (lost["status"], lost["error"]["type"]) == ("failed", "WorkerLost")
    assert (again["status"], again["trigger"], again["reference_time"]) == ("succeeded", "catch_up", NOON)
    assert sweep(stage)["items"] == 0
    assert not stage.aws.invoked


def test_a_run_at_work_is_left_alone(stage: Stage, db: psycopg.Connection) -> None:
    abandoned_run(db, "note_run", NOON, lease=HOUR)
    assert sweep(stage)["items"] == 0
    assert [row["status"] for row in runs_of(db, "note_run")] == ["running"]
    assert count(db, "signalbox.job_locks") == 1


def test_a_lost_run_is_asked_for_with_its_params(stage: Stage, db: psycopg.Connection) -> None:
    abandoned_run(db, "greet", NOON, lease=GONE, request=Jsonb({"params": {"name": "a", "times": 3}, "force": True}))
    sweep(stage)
    [payload] = stage.aws.payloads
    assert payload == {
        "task": "greet",
        "reference_time": NOON.isoformat(),
        "params": {"name": "a", "times": 3},
        "force": True,
        "origin": {"trigger": "catch_up", "step": 0},
    }
    assert [answer["items"] for answer in stage.deliver()] == [3]


def test_lost_run_of_a_disabled_task_holds_up_no_other(stage: Stage, db: psycopg.Connection) -> None:
    for task in ("note_run", "mark_rows"):
        abandoned_run(db, task, NOON, lease=GONE)
    assert sweep(stage.another(disabled_tasks="note_run"))["items"] == 3
    assert [payload["task"] for payload in stage.aws.payloads] == ["mark_rows"]


def test_a_slot_that_kills_its_workers_is_left_alone_after_three(stage: Stage, db: psycopg.Connection) -> None:
    lost_run(db, "note_run", NOON)
    lost_run(db, "note_run", NOON)
    abandoned_run(db, "note_run", NOON, lease=GONE)
    sweep(stage)
    assert not stage.aws.invoked


def test_a_continuation_that_lambda_never_got_is_asked_for_again(stage: Stage, db: psycopg.Connection) -> None:
    succeeded_run(db, "mark_rows", NOON, more=True, step=2, ago=timedelta(minutes=6))
    sweep(stage)
    [payload] = stage.aws.payloads
    assert payload["origin"] == {"trigger": "continuation", "step": 3}


def test_a_continuation_has_time_to_begin(stage: Stage, db: psycopg.Connection) -> None:
    succeeded_run(db, "mark_rows", NOON, more=True, ago=timedelta(minutes=4))
    sweep(stage)
    assert not stage.aws.invoked


def test_a_chain_that_reached_its_cap_is_left_alone(stage: Stage, db: psycopg.Connection) -> None:
    succeeded_run(db, "mark_rows", NOON, more=True, capped=True, step=100)
    sweep(stage)
    assert not stage.aws.invoked


def test_a_chain_that_has_gone_on_is_left_alone(stage: Stage, db: psycopg.Connection) -> None:
    succeeded_run(db, "mark_rows", NOON, more=True)
    succeeded_run(db, "mark_rows", NOON, step=1)
    sweep(stage)
    assert not stage.aws.invoked


def test_a_resumed_run_that_found_nothing_to_do_ends_the_chain(stage: Stage, db: psycopg.Connection) -> None:
    lost_run(db, "note_run", NOON)
    skipped_run(db, "note_run", NOON)
    sweep(stage)
    assert not stage.aws.invoked


def test_a_delivery_that_was_turned_away_does_not(stage: Stage, db: psycopg.Connection) -> None:
    lost_run(db, "note_run", NOON)
    skipped_run(db, "note_run", NOON, ran=False)
    sweep(stage)
    assert len(stage.aws.invoked) == 1


def test_leases_that_nobody_gave_back_are_dropped(stage: Stage, db: psycopg.Connection) -> None:
    db.execute("INSERT INTO signalbox.job_locks VALUES ('other:2026-03-10T12', 'v0', now() - interval '2 h', now())")
    sweep(stage)
    assert count(db, "signalbox.job_locks") == 0
