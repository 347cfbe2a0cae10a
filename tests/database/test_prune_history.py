"""prune_history deletes the runs that a task no longer keeps, and no others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg

from signalbox.testing.rows import abandoned_run, count, runs_of, succeeded_run
from signalbox.testing.stage import Stage

DAY = timedelta(days=1)


def test_runs_older_than_their_tasks_retention_are_deleted(stage: Stage, db: psycopg.Connection) -> None:
    now = datetime.now(UTC)
    for task, age in [("sweep_runs", 8), ("sweep_runs", 6), ("note_run", 91), ("note_run", 89), ("unheard_of", 91)]:
        succeeded_run(db, task, now - age * DAY, ago=age * DAY)
    abandoned_run(db, "note_run", now - 200 * DAY, lease=DAY, ago=200 * DAY)

    answer = stage.run("prune_history", now)

    assert answer["items"] == 2
    assert [row["status"] for row in runs_of(db, "sweep_runs")] == ["succeeded"]
    assert [row["status"] for row in runs_of(db, "note_run")] == ["succeeded", "running"]
    assert len(runs_of(db, "unheard_of")) == 1  # of a pack that may come back


def test_pruning_goes_on_in_batches_and_stops_at_the_end_of_its_budget(stage: Stage, db: psycopg.Connection) -> None:
    db.execute(
        "INSERT INTO signalbox.job_history (job_type, slot, trigger, status, worker_id, started_at, finished_at) "
        "SELECT 'note_run', now() - interval '100 d', 'schedule', 'succeeded', 'tests', now() - interval '100 d', "
        "now() - interval '100 d' FROM generate_series(1, 2500)"
    )
    now = datetime.now(UTC)
    first = stage.run("prune_history", now, seconds=10.0)  # no more than the margin: no time for a single batch
    assert (first["items"], first["more"]) == (0, True)
    assert [answer["items"] for answer in stage.deliver(now)] == [2500]
    assert count(db, "signalbox.job_history WHERE job_type = 'note_run'") == 0


def test_a_disabled_task_keeps_its_history_as_long_as_an_enabled_one(stage: Stage, db: psycopg.Connection) -> None:
    now = datetime.now(UTC)
    for age in (100, 29):
        succeeded_run(db, "reconcile_slots", now - age * DAY, ago=age * DAY)
    other = stage.another(disabled_tasks="reconcile_slots")
    assert other.run("prune_history", now)["items"] == 1
    assert len(runs_of(db, "reconcile_slots")) == 1


def test_finished_backfills_go_after_a_season(stage: Stage, db: psycopg.Connection) -> None:
    db.execute(
        "INSERT INTO signalbox.backfills (task, range_from, range_to, rate_per_minute, status, finished_at) VALUES "
        "('note_run', now(), now(), 1, 'completed', now() - interval '91 d'), "
        "('note_run', now(), now(), 1, 'cancelled', now() - interval '89 d'), "
        "('note_run', now(), now(), 1, 'running', NULL)"
    )
    stage.run("prune_history", datetime.now(UTC))
    assert count(db, "signalbox.backfills") == 2
