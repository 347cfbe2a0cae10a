"""Operators' statistics come from the figures and from indexes over jobs that have not ended."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from signalbox.operate.filters import JobFilter
from signalbox.operate.job_detail import show_job
from signalbox.operate.listing import list_jobs
from signalbox.stats import statistics
from signalbox.stats.health import PlaneHealth
from signalbox.stats.statistics import SQL, list_tenants, show_health, show_statistics
from signalbox.testing.rows import (
    blocked_job,
    dead_letter,
    ended_job,
    execution,
    insert_job,
    pending_job,
    queued_job,
    running_job,
)
from signalbox.testing.stage import Stage

SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
AT = datetime(2026, 3, 10, 12, 30, tzinfo=UTC)


def roll_up(stage: Stage, at: datetime = AT) -> None:
    stage.run("roll_up_metrics", at, params={"hours": 48})


def test_of_nothing_there_are_no_rates(db: psycopg.Connection) -> None:
    found = show_statistics(db, now=AT).as_json()
    assert (found["total"], found["throughput_per_minute"]) == (0, 0)
    assert [found[name] for name in ("completion_rate", "dlq_rate", "failure_rate", "average_ms", "p95_ms")] == [
        None
    ] * 5
    assert found["by_status"] == dict.fromkeys(
        ("pending", "queued", "running", "paused", "completed", "failed", "cancelled"), 0
    )
    json.dumps(found)


def test_the_figures_of_a_window(stage: Stage, db: psycopg.Connection) -> None:
    for place in range(100):
        execution(db, AT - HOUR, ms=1000 if place < 96 else 30_000, waited_ms=10)
    for _ in range(25):
        execution(db, AT - HOUR, ms=1000, status="failed")
    dead_letter(db, None, last_failed_at=AT - HOUR)
    for _ in range(24):
        dead_letter(db, None, "resolved", last_failed_at=AT - HOUR)
    execution(db, AT - 26 * HOUR)
    roll_up(stage)

    found = show_statistics(db, DAY, now=AT)
    told = found.as_json()
    assert (found.period, found.since) == ("hour", AT - DAY - 30 * MINUTE)
    assert (told["by_status"]["completed"], told["by_status"]["failed"], told["total"]) == (100, 25, 125)
    assert (told["completion_rate"], told["dlq_rate"], told["failure_rate"]) == (0.8, 0.2, 0.2)
    assert told["average_ms"] == pytest.approx((121 * 1000 + 4 * 30_000) / 125, abs=0.1)
    assert 724 <= told["p50_ms"] <= 1024
    assert 724 <= told["p95_ms"] <= 1024
    assert 23_000 <= told["p99_ms"] <= 30_000
    assert told["most_ms"] == 30_000
    assert told["throughput_per_minute"] == round(100 / (24.5 * 60), 2)
    assert told["dead_letters"] == {"pending": 1, "investigating": 0}


@pytest.mark.parametrize("last", [20 * HOUR, 7 * MINUTE + 20 * SECOND, 10 * SECOND])
@pytest.mark.parametrize("window", [HOUR / 2, 2 * HOUR, DAY, 30 * DAY])
def test_figures_are_as_of_now_whenever_they_were_rolled_up(
    stage: Stage, db: psycopg.Connection, window: timedelta, last: timedelta
) -> None:
    times = [45 * HOUR, 21 * HOUR, 3 * HOUR, 90 * MINUTE, 20 * MINUTE, 7 * MINUTE, 4 * MINUTE, 5 * SECOND]
    for ago in times:
        if ago > last:
            execution(db, AT - ago)
    roll_up(stage, AT - last)
    for ago in times:
        if ago <= last:
            execution(db, AT - ago)
    live = show_statistics(db, window, now=AT).as_json()
    assert statistics.health_beside(db, show_statistics(db, window, now=AT)) == show_health(db, now=AT)
    roll_up(stage)
    assert statistics.health_beside(db, show_statistics(db, window, now=AT)) == show_health(db, now=AT)
    assert live == show_statistics(db, window, now=AT).as_json()
    assert live["completed"] == sum(AT - ago >= show_statistics(db, window, now=AT).since for ago in times)


@pytest.mark.parametrize(("window", "period", "points"), [(HOUR, "minute", 3), (DAY, "hour", 2), (30 * DAY, "day", 1)])
def test_window_is_split_into_periods_that_fit_it(
    stage: Stage, db: psycopg.Connection, window: timedelta, period: str, points: int
) -> None:
    for ago in (MINUTE, 10 * MINUTE, 50 * MINUTE):
        execution(db, AT - ago)
    roll_up(stage)
    found = show_statistics(db, window, now=AT)
    assert found.period == period
    assert [row["completed"] for row in found.as_json()["by_window"]] == ([1, 1, 1], [1, 2], [3])[3 - points]


def test_statistics_of_one_type_alone(stage: Stage, db: psycopg.Connection) -> None:
    execution(db, AT - MINUTE, job_type="obey", ms=500)
    execution(db, AT - MINUTE, lane="low")
    execution(db, AT - MINUTE, lane="high")
    queued_job(db, AT, job_type="obey")
    queued_job(db, AT)
    dead_letter(db, None, job_type="obey", last_failed_at=AT - MINUTE)
    dead_letter(db, None, job_type="unheard_of", last_failed_at=AT - MINUTE)
    roll_up(stage)

    told = show_statistics(db, DAY, "obey", now=AT).as_json()
    assert (told["by_status"]["completed"], told["by_status"]["queued"], told["dlq_rate"]) == (1, 1, 0.5)
    assert [row["job_type"] for row in told["by_type"]] == ["obey"]
    everyone = {row["job_type"]: row for row in show_statistics(db, DAY, now=AT).as_json()["by_type"]}
    assert {name: row["completed"] for name, row in everyone.items()} == {"do_nothing": 2, "obey": 1, "unheard_of": 0}
    assert everyone["unheard_of"]["dlq_rate"] == 1


def test_days_of_a_window_end_with_the_hours_and_minutes_of_today(stage: Stage, db: psycopg.Connection) -> None:
    today = AT.replace(hour=0, minute=0, second=0)
    for ended in (today - HOUR, today + HOUR, AT - 2 * MINUTE):
        execution(db, ended)
    roll_up(stage)
    db.execute("DELETE FROM signalbox.job_metrics WHERE period = 'minute' AND starts_at < %s", (AT - HOUR,))
    found = show_statistics(db, 30 * DAY, now=AT)
    assert found.total.completed == 3
    assert {at: figures.completed for at, figures in found.by_window.items()} == {today - DAY: 1, today: 2}


def test_jobs_that_have_not_ended_are_counted_as_they_are(db: psycopg.Connection) -> None:
    pending_job(db, AT + HOUR)
    first = pending_job(db, AT - 3 * MINUTE)
    blocked_job(db, on=first)
    queued_job(db, AT - 5 * MINUTE)
    running_job(db)
    insert_job(db, {"status": "paused"})
    ended_job(db, AT, "failed")
    ended_job(db, AT)
    found = show_statistics(db, now=AT)
    assert {name: found.by_status[name] for name in ("pending", "queued", "running", "paused")} == {
        "pending": 3,
        "queued": 1,
        "running": 1,
        "paused": 1,
    }
    assert found.waiting == 2
    assert found.oldest_waiting == 7 * MINUTE


def test_what_has_ended_is_not_read(db: psycopg.Connection) -> None:
    """Twenty thousand jobs have ended, and one has not."""
    db.execute(
        "INSERT INTO signalbox.jobs (job_type, lane, max_attempts, timeout_ms, status, completed_at, updated_at) "
        "SELECT 'do_nothing', 'normal', 3, 1000, 'completed', now(), now() FROM generate_series(1, 20000)"
    )
    queued_job(db, AT)
    db.execute("VACUUM ANALYZE signalbox.jobs")
    for query in ("count_live", "count_silent"):
        rows = db.execute(f"EXPLAIN {SQL[query]}".encode(), {"now": AT, "job_type": None, "tenant": None}).fetchall()
        plan = "\n".join(row[0] for row in rows)
        assert "on jobs" in plan
        assert "Seq Scan on jobs" not in plan


def test_a_plane_with_nothing_wrong_is_healthy(stage: Stage, db: psycopg.Connection) -> None:
    execution(db, AT - MINUTE)
    roll_up(stage)
    report = show_health(db, now=AT)
    assert (report.status, list(report.alerts)) == (PlaneHealth.HEALTHY, [])
    assert report.as_json()["checked_at"] == AT.isoformat()


def test_a_stale_job_degrades_it_and_names_its_worker_as_down(db: psycopg.Connection) -> None:
    running_job(db, health_status="STALE")
    running_job(db, health_status="FAILED")
    report = show_health(db, now=AT)
    assert (report.status, report.signs.stale_jobs) == (PlaneHealth.DEGRADED, 2)
    [alert] = report.alerts
    assert (alert.name, alert.severity) == ("worker_down", "critical")
    assert alert.message.startswith("1 worker ")


def test_open_dead_letters_make_it_unhealthy_until_they_are_dealt_with(db: psycopg.Connection) -> None:
    for status in ["pending"] * 50 + ["investigating", "resolved", "ignored", "redriven"]:
        dead_letter(db, None, status, last_failed_at=AT - 2 * HOUR)
    report = show_health(db, now=AT)
    assert (report.status, report.signs.open_dead_letters, report.signs.failed_last_hour) == (
        PlaneHealth.UNHEALTHY,
        51,
        0,
    )
    db.execute("UPDATE signalbox.dead_letter_jobs SET status = 'ignored', resolved_at = now()")
    assert show_health(db, now=AT).status is PlaneHealth.HEALTHY


def test_the_failures_of_the_last_hour_degrade_it(db: psycopg.Connection) -> None:
    for ago in [59 * MINUTE + 59 * SECOND] * 20 + [HOUR + SECOND]:
        dead_letter(db, None, "resolved", last_failed_at=AT - ago)
    assert show_health(db, now=AT).status is PlaneHealth.HEALTHY
    dead_letter(db, None, "resolved", last_failed_at=AT - HOUR)
    assert show_health(db, now=AT).status is PlaneHealth.DEGRADED


def test_a_lane_in_which_jobs_wait_and_none_begins_is_down(stage: Stage, db: psycopg.Connection) -> None:
    for lane in ("high", "low"):
        queued_job(db, AT - 14 * MINUTE, lane=lane)  # for sixteen minutes
    queued_job(db, AT - 12 * MINUTE, lane="normal")
    execution(db, AT - 5 * MINUTE, lane="low")
    roll_up(stage)
    [alert] = show_health(db, now=AT).alerts
    assert (alert.name, alert.message) == ("worker_down", "jobs wait in high, and none of them starts")


def test_jobs_add_up_after_a_redrive(stage: Stage, db: psycopg.Connection) -> None:
    for _ in range(3):
        dead_letter(db, ended_job(db, AT - MINUTE, "failed"), last_failed_at=AT - MINUTE)
    ended_job(db, AT - MINUTE, "cancelled")
    execution(db, AT - MINUTE)
    db.execute(
        "UPDATE signalbox.dead_letter_jobs SET status = 'redriven' WHERE id = (SELECT min(id::text)::uuid FROM "
        "signalbox.dead_letter_jobs)"
    )
    told = show_statistics(db, now=AT).as_json()
    assert (told["by_status"]["failed"], told["by_status"]["completed"], told["by_status"]["cancelled"]) == (2, 1, 1)
    assert told["total"] == 4


def test_statistics_of_one_tenant_alone(db: psycopg.Connection) -> None:
    for tenant, status in (("acme", "completed"), ("acme", "failed"), ("other", "completed")):
        ended_job(db, AT - MINUTE, status, tenant=tenant)
    queued_job(db, AT, tenant="acme")
    dead_letter(db, None, tenant="acme", last_failed_at=AT - MINUTE)
    told = show_statistics(db, now=AT, tenant="acme").as_json()
    found = {name: told["by_status"][name] for name in ("queued", "completed", "failed")}
    assert found == {"queued": 1, "completed": 1, "failed": 1}
    assert told["by_type"][0]["failed"] == 1
    assert [(one["tenant"], one["waiting"], one["open_dead_letters"]) for one in list_tenants(db, now=AT)] == [
        ("acme", 1, 1)
    ]


def test_worker_is_silent_after_three_missed_heartbeats(db: psycopg.Connection) -> None:
    for seconds in (44, 50, 70):
        running_job(db)
        db.execute(
            "UPDATE signalbox.jobs SET heartbeat_at = now() - %s WHERE heartbeat_at IS NULL", (seconds * SECOND,)
        )
    told = show_statistics(db, now=AT).as_json()
    assert (told["silent"], told["longest_silent_seconds"], told["stale"]) == (2, 70, 0)
    jobs = list_jobs(db, JobFilter(status="running"), 10)
    assert [job["silent_seconds"] for job in jobs] == [70, 50, None]
    assert show_job(db, jobs[0]["id"])["job"]["silent_seconds"] == 70
    assert show_job(db, jobs[0]["id"])["executions"][0]["duration_ms"] is None


def test_statistics_are_of_one_instant(dsn: str, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id = running_job(db)
    count_live = statistics.count_live

    def end_the_job_first(*asked: Any) -> list[statistics.Live]:
        with psycopg.connect(dsn, autocommit=True) as worker:
            worker.execute(
                "SELECT signalbox.end_attempts(jsonb_set(%s, '{0,token}', to_jsonb(lease_token)))"
                " FROM signalbox.jobs WHERE id = %s",
                (json.dumps([{"id": job_id, "status": "completed", "execution": "completed"}]), job_id),
            )
        return count_live(*asked)

    monkeypatch.setattr(statistics, "count_live", end_the_job_first)
    told = show_statistics(db, now=datetime.now(UTC))
    assert (told.by_status["running"], told.by_status["completed"]) == (1, 0)
    monkeypatch.undo()
    told = show_statistics(db, now=datetime.now(UTC))
    assert (told.by_status["running"], told.by_status["completed"]) == (0, 1)


@pytest.mark.parametrize(
    "given", [{"hours": 1}, {"hours": 24}, {"hours": 720}, {"job_type": "obey"}, {"tenant": "acme"}]
)
def test_health_beside_figures_is_the_health(stage: Stage, given: dict[str, Any]) -> None:
    for word, tenant in (("complete", "acme"), ("fail_for_good", "acme"), ("wait", None)):
        stage.work(stage.submit("obey", payload={"word": word}, tenant=tenant))
    stage.submit("do_nothing")
    now = datetime.now(UTC)
    found = stage.operate("show_statistics", now, health=True, **given)
    assert found["health"] == {
        name: value for name, value in stage.operate("show_health", now).items() if name != "operation"
    }
    assert found["health"]["open_dead_letters"] == 1
