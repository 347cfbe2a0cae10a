"""The ledger drops old partitions whole, and no run that its task still keeps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg

from signalbox.testing.rows import abandoned_run, missed_slot, runs_of, succeeded_run
from signalbox.testing.stage import Stage
from tests.support.partition_rows import partitions_of, past_partition

DAY = timedelta(days=1)
NOW = datetime.now(UTC)


def test_a_week_goes_at_once_and_what_some_tasks_keep_for_longer_stays(stage: Stage, db: psycopg.Connection) -> None:
    old = past_partition(db, "job_history", 5)
    for task in ("sweep_runs", "sweep_runs", "note_run", "unheard_of"):
        succeeded_run(db, task, old, ago=NOW - old)
    abandoned_run(db, "sweep_runs", old, lease=DAY, ago=NOW - old)
    assert stage.run("prune_history", NOW)["items"] == 2
    kept = {task: [row["status"] for row in runs_of(db, task)] for task in ("sweep_runs", "note_run", "unheard_of")}
    assert kept == {"sweep_runs": ["running"], "note_run": ["succeeded"], "unheard_of": ["succeeded"]}
    assert all(start > old for start, _ in partitions_of(db, "job_history"))
    # Not all that is there: before 02:30 the pruning's own slot is yesterday's, which lies in no partition.
    left = db.execute("SELECT count(*) FROM signalbox.job_history_default WHERE slot = %s", (old,)).fetchone()
    assert left == (3,)


def test_a_run_that_was_moved_keeps_its_number(stage: Stage, db: psycopg.Connection) -> None:
    old = past_partition(db, "job_history", 5)
    run_id = succeeded_run(db, "note_run", old, ago=NOW - old)
    stage.run("prune_history", NOW)
    [row] = runs_of(db, "note_run")
    assert (row["id"], row["slot"]) == (run_id, old)
    assert succeeded_run(db, "note_run", NOW) > run_id


def test_week_with_kept_runs_stays_and_only_overdue_runs_go(stage: Stage, db: psycopg.Connection) -> None:
    db.execute("ALTER FUNCTION signalbox.drop_runs SET lock_timeout = '10ms'")
    old = past_partition(db, "job_history", 5)
    overdue = succeeded_run(db, "sweep_runs", old, ago=NOW - old)
    young = succeeded_run(db, "sweep_runs", old, ago=10 * DAY)  # a backfill's: its slot is older than itself
    with psycopg.connect(db.info.dsn) as reader:
        reader.execute("SELECT FROM signalbox.job_history WHERE id = %s", (overdue,))
        assert stage.run("prune_history", NOW)["items"] == 1
    assert [row["id"] for row in runs_of(db, "sweep_runs")] == [young]


def test_a_slot_is_missed_once_though_it_was_moved(stage: Stage, db: psycopg.Connection) -> None:
    old = past_partition(db, "job_history", 5)
    missed_slot(db, "note_run", old, ago=NOW - old)
    stage.run("prune_history", NOW)
    again = (
        "INSERT INTO signalbox.job_history "
        "(job_type, slot, trigger, status, reason, worker_id, started_at, finished_at) "
        "VALUES ('note_run', %s, 'schedule', 'missed', 'again', 'tests', now(), now()) "
        "ON CONFLICT (job_type, slot) WHERE status = 'missed' DO NOTHING"
    )
    assert db.execute(again, (old,)).rowcount == 0
