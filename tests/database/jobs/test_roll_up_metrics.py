"""Attempts become the same figures by minute, hour and day, however often and late they are counted."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from signalbox.stats.histogram import BUCKETS
from signalbox.tasks.roll_up_metrics import stretches
from signalbox.testing.rows import (
    count,
    dead_letter,
    execution,
    job,
    pending_job,
    queued_job,
    running_job,
    select,
    succeeded_run,
)
from signalbox.testing.stage import Stage
from tests.support.at_once import at_once

SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
AT = datetime(2026, 3, 10, 12, 1, tzinfo=UTC)
NOON = AT - MINUTE


def roll_up(stage: Stage, at: datetime = AT, **fields: Any) -> int:
    return int(stage.run("roll_up_metrics", at, force=True, **fields)["items"])


def metrics(db: psycopg.Connection, period: str) -> list[dict[str, Any]]:
    return select(
        db, "SELECT * FROM signalbox.job_metrics WHERE period = %s ORDER BY starts_at, job_type, lane", period
    )


def everything(db: psycopg.Connection) -> list[tuple[Any, ...]]:
    return db.execute("SELECT * FROM signalbox.job_metrics ORDER BY period, starts_at, job_type, lane").fetchall()


def sums(db: psycopg.Connection, column: str) -> dict[str, int]:
    statement = psycopg.sql.SQL("SELECT period, sum({})::integer FROM signalbox.job_metrics GROUP BY period")
    return dict(db.execute(statement.format(psycopg.sql.Identifier(column))).fetchall())


def test_with_no_attempts_there_are_no_figures(stage: Stage, db: psycopg.Connection) -> None:
    assert roll_up(stage) == 0
    assert everything(db) == []


def test_attempts_are_counted_by_minute_of_end_type_and_lane(stage: Stage, db: psycopg.Connection) -> None:
    execution(db, NOON - MINUTE, ms=100)
    execution(db, NOON - SECOND, ms=200)
    execution(db, NOON - SECOND, lane="low")
    execution(db, NOON - SECOND, job_type="obey")
    execution(db, NOON)
    assert roll_up(stage) == 5  # the first began in the minute before it ended

    found = {(row["starts_at"], row["job_type"], row["lane"]): row["completed"] for row in metrics(db, "minute")}
    minute = NOON - MINUTE
    assert {key: number for key, number in found.items() if number} == {
        (minute, "do_nothing", "normal"): 2,
        (minute, "do_nothing", "low"): 1,
        (minute, "obey", "normal"): 1,
        (NOON, "do_nothing", "normal"): 1,
    }
    assert sums(db, "completed") == {"minute": 5, "hour": 5, "day": 5}
    assert [row["starts_at"] for row in metrics(db, "day")] == [NOON.replace(hour=0)] * 3


def test_every_end_is_counted_as_what_it_is(stage: Stage, db: psycopg.Connection) -> None:
    ends = ("completed", "failed", "timeout", "cancelled", "continued", "snoozed", "throttled", "released", "lost")
    for status in ends:
        execution(db, NOON + SECOND, status=status)
    running_job(db, started_at=NOON)
    roll_up(stage)
    [row] = metrics(db, "minute")
    assert [row["begun"], row["others"]] == [10, 4]
    assert {row[name] for name in ("completed", "failed", "timed_out", "cancelled", "throttled")} == {1}


def test_times_are_those_of_attempts_that_ran(stage: Stage, db: psycopg.Connection) -> None:
    execution(db, NOON + 30 * SECOND, ms=1000, waited_ms=50, memory_used_mb=80, cpu_time_ms=400)
    execution(db, NOON + 30 * SECOND, ms=3000, waited_ms=150, memory_used_mb=60, cpu_time_ms=100, status="failed")
    execution(db, NOON + 30 * SECOND, ms=9000, waited_ms=70, status="released")
    roll_up(stage)
    [row] = metrics(db, "hour")
    assert (row["total_ms"], row["most_ms"], row["waited_ms"], row["most_memory_mb"], row["cpu_ms"]) == (
        4000, 3000, 200, 80, 500,
    )  # fmt: skip
    assert (sum(row["durations"]), sum(row["waits"])) == (2, 2)


@pytest.mark.parametrize(
    ("ms", "bucket"), [(0, 0), (1, 0), (2, 2), (3, 3), (4, 4), (1000, 19), (1024, 20), (60_000, 31), (2**31 - 1, 61)]
)
def test_duration_buckets_begin_at_powers_of_the_square_root_of_two(
    stage: Stage, db: psycopg.Connection, ms: int, bucket: int
) -> None:
    execution(db, NOON, ms=0, waited_ms=ms)
    roll_up(stage)
    [row] = metrics(db, "minute")
    assert [place for place, number in enumerate(row["waits"]) if number] == [bucket]
    assert len(row["waits"]) == len(row["durations"]) == BUCKETS


def test_counting_again_changes_nothing(stage: Stage, db: psycopg.Connection) -> None:
    for place in range(50):
        execution(db, NOON - place * 20 * SECOND, ms=place * 37, waited_ms=place, lane=("high", "low")[place % 2])
    roll_up(stage)
    first = everything(db)
    roll_up(stage)
    assert everything(db) == first
    assert sums(db, "completed") == {"minute": 50, "hour": 50, "day": 50}


def test_an_attempt_that_is_recorded_late_is_counted_in_its_own_minute(stage: Stage, db: psycopg.Connection) -> None:
    execution(db, NOON)
    roll_up(stage)
    execution(db, NOON - 15 * SECOND)
    execution(db, NOON - 10 * MINUTE)
    roll_up(stage, AT + 5 * MINUTE)
    assert [row["starts_at"] for row in metrics(db, "minute")] == [NOON - 10 * MINUTE, NOON - MINUTE, NOON]
    assert sums(db, "completed") == {"minute": 3, "hour": 3, "day": 3}


def test_an_attempt_whose_start_is_put_right_later_leaves_nothing_behind(stage: Stage, db: psycopg.Connection) -> None:
    """A worker learns when each job began only when it records the batch."""
    job_id = running_job(db, started_at=NOON)
    roll_up(stage)
    assert [row["begun"] for row in metrics(db, "minute")] == [1]
    db.execute("DELETE FROM signalbox.jobs")
    execution(db, NOON + 2 * MINUTE, job_id=job_id)
    roll_up(stage, AT + 5 * MINUTE)
    assert [(row["starts_at"], row["begun"]) for row in metrics(db, "minute")] == [(NOON + 2 * MINUTE, 1)]
    assert sums(db, "begun") == {"minute": 1, "hour": 1, "day": 1}


def test_attempt_lost_long_ago_is_counted_when_it_is_rescued(stage: Stage, db: psycopg.Connection) -> None:
    execution(db, NOON, ms=59 * 60_000, status="lost")
    roll_up(stage)
    assert sums(db, "others") == {"minute": 1, "hour": 1, "day": 1}


def test_what_came_while_nothing_was_counted_is_made_good(stage: Stage, db: psycopg.Connection) -> None:
    succeeded_run(db, "roll_up_metrics", AT - 26 * HOUR)
    for hours in (1, 7, 13, 25):
        execution(db, NOON - hours * HOUR)
    execution(db, NOON - 30 * HOUR)  # before the last run, which has seen it
    roll_up(stage)
    assert sums(db, "completed") == {"minute": 4, "hour": 4, "day": 4}


def test_a_first_run_counts_the_last_week(stage: Stage, db: psycopg.Connection) -> None:
    for days in (1, 6, 8):
        execution(db, NOON - days * DAY)
    roll_up(stage)
    assert sums(db, "completed") == {"minute": 2, "hour": 2, "day": 2}


def test_after_a_run_of_late_only_the_last_minutes_are_counted(stage: Stage, db: psycopg.Connection) -> None:
    succeeded_run(db, "roll_up_metrics", AT - 5 * MINUTE)
    execution(db, NOON - 50 * MINUTE)
    roll_up(stage)
    assert everything(db) == []
    roll_up(stage, params={"hours": 2})
    assert sums(db, "completed") == {"minute": 1, "hour": 1, "day": 1}


def test_figures_whose_minutes_are_gone_stay(stage: Stage, db: psycopg.Connection) -> None:
    execution(db, NOON - 3 * HOUR)
    roll_up(stage)
    db.execute("DELETE FROM signalbox.job_metrics WHERE period = 'minute'")
    execution(db, NOON)
    roll_up(stage)
    assert sums(db, "completed") == {"minute": 1, "hour": 2, "day": 2}


def test_days_and_hours_are_those_of_utc(stage: Stage, db: psycopg.Connection) -> None:
    stage.app.resources.database.connection().execute("SET timezone = 'Asia/Kolkata'")
    midnight = NOON.replace(hour=0)
    execution(db, midnight - SECOND)
    execution(db, midnight + SECOND)
    roll_up(stage, midnight + 2 * MINUTE)
    assert [row["starts_at"] for row in metrics(db, "hour")] == [midnight - HOUR, midnight]
    assert [row["starts_at"] for row in metrics(db, "day")] == [midnight - DAY, midnight]


def test_one_bad_attempt_does_not_spoil_the_count(stage: Stage, db: psycopg.Connection) -> None:
    """Clocks went backwards: the attempt began before it was queued, and used nothing."""
    execution(db, NOON, queued_at=NOON + HOUR, cpu_time_ms=None)
    execution(db, NOON, waited_ms=5)
    roll_up(stage)
    [row] = metrics(db, "minute")
    assert (row["completed"], row["waited_ms"], sum(row["waits"])) == (2, 5, 2)


def test_two_at_once_count_as_one(stage: Stage, db: psycopg.Connection) -> None:
    for place in range(200):
        execution(db, NOON - place * 5 * SECOND, ms=place)
    other = stage.another()
    answers = at_once(lambda: roll_up(stage), lambda: roll_up(other, AT + 5 * MINUTE))
    assert all(isinstance(answer, int) for answer in answers), answers
    assert sums(db, "completed") == {"minute": 200, "hour": 200, "day": 200}


def test_long_stretches_are_cut_into_pieces_of_whole_hours() -> None:
    assert list(stretches(AT - 20 * MINUTE, AT)) == [(AT - 20 * MINUTE, AT)]
    pieces = list(stretches(AT - 13 * HOUR, AT))
    assert [end - start for start, end in pieces] == [6 * HOUR, 6 * HOUR, HOUR + MINUTE]
    assert pieces[0][0].minute == 0
    assert all(end == start for (_, end), (start, _) in pairwise(pieces))


def test_what_waits_and_runs_is_emitted(
    stage: Stage, db: psycopg.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    pending_job(db, AT + HOUR)
    pending_job(db, AT - 5 * MINUTE, lane="low")
    queued_job(db, AT, lane="high")
    running_job(db, health_status="STALE")
    dead_letter(db, None)
    roll_up(stage)
    line = emitted(capsys)
    assert {name: line[name][0] for name in line if name.startswith(("Jobs", "Dead", "Oldest"))} == {
        "JobsWaiting": 2,
        "JobsRunning": 1,
        "DeadLettersPending": 1,
        "OldestWaitingSeconds": 300,
    }
    assert line["lanes"] == {
        "high": {"queued": 1, "oldest_seconds": 120},
        "normal": {"pending": 1, "running": 1, "oldest_seconds": 0},
        "low": {"pending": 1, "oldest_seconds": 300},
        "heavy": {"oldest_seconds": 0},
    }


def test_real_attempts_become_figures(stage: Stage, db: psycopg.Connection) -> None:
    """claim_jobs and end_attempts write the attempts."""
    at_work = running_job(db)
    token = str(job(db, at_work)["lease_token"])
    end = json.dumps([{"id": at_work, "token": token, "status": "completed", "execution": "completed"}])
    db.execute("SELECT signalbox.end_attempts(%s)", (end,))
    roll_up(stage, datetime.now(UTC))
    assert sums(db, "completed") == {"minute": 1, "hour": 1, "day": 1}
    assert count(db, "signalbox.job_metrics WHERE begun = 1 AND period = 'hour'") == 1


def emitted(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Return the line that counts waiting and running jobs."""
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    [told] = [line for line in lines if "JobsWaiting" in line]
    return dict(told)


def test_what_the_alerts_go_by_is_emitted(
    stage: Stage, db: psycopg.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in range(101):
        execution(db, NOON - place * MINUTE, status="failed" if place < 25 else "completed", ms=1000, waited_ms=50)
    queued_job(db, AT - HOUR, lane="high")
    for _ in range(51):
        dead_letter(db, None, last_failed_at=AT - HOUR)
    running_job(db, health_status="STALE")
    roll_up(stage, params={"hours": 3})

    told = emitted(capsys)
    assert (told["health"], told["WorkersDown"]) == ("unhealthy", [2])
    assert told["FailureRatePercent"] == [pytest.approx(100 * 25 / 101)]
    assert 700 < told["DurationP95Ms"][0] < 1500
    assert told["FailedJobsPercent"] == [pytest.approx(100 * 51 / (51 + 76))]
    assert 40 < told["StartWaitP95Ms"][0] < 71  # histograms are off by the square root of two


def test_quiet_plane_is_healthy_and_emits_zeros_so_that_alarms_end(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    roll_up(stage)
    told = emitted(capsys)
    assert told["health"] == "healthy"
    numbers = {name: value for name, value in told.items() if isinstance(value, list)}
    assert numbers.pop("DatabaseConnectionsPercent")[0] > 0
    assert len(numbers) == 9
    assert set(map(tuple, numbers.values())) == {(0,)}


def test_connections_are_counted_against_what_the_server_takes(
    stage: Stage, db: psycopg.Connection, dsn: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with psycopg.connect(dsn), psycopg.connect(dsn):
        roll_up(stage)

    told = emitted(capsys)
    [limit] = db.execute("SHOW max_connections").fetchone() or (0,)
    assert 100 * 3 / int(limit) <= told["DatabaseConnectionsPercent"][0] <= 100
