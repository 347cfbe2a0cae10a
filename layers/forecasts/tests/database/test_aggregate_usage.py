"""aggregate_usage: what was counted is filed once, under its own day; and overages end when the day before was fine."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from threading import Thread
from typing import Any
from uuid import UUID

import psycopg
import pytest

from signalbox.testing.rows import count
from signalbox.testing.stage import Stage
from tests.support.at_once import two_at_once
from tests.support.forecast_rows import organization, plan, watchpoint
from tests.support.lock_waits import wait_for_no_lock

HOUR, DAY, SECOND = timedelta(hours=1), timedelta(days=1), timedelta(seconds=1)
TODAY = datetime(2026, 3, 10, tzinfo=UTC)
ONE = TODAY + HOUR  # when the task runs
YESTERDAY = date(2026, 3, 9)


def period(
    db: psycopg.Connection, of: UUID, source: str = "api", start: datetime = TODAY - DAY, calls: int = 5, **more: Any
) -> None:
    """Add a row that counts; its period is the rest of the day that it starts on, unless `end` says otherwise."""
    end = more.get("end", start.replace(hour=0, minute=0, second=0) + DAY)
    row = (of, source, calls, more.get("watchpoints", 3), start, end)
    db.execute("INSERT INTO forecasts.rate_limits VALUES (%s, %s, %s, %s, %s, %s)", row)


def usage(db: psycopg.Connection, of: UUID, day: date = YESTERDAY, source: str = "api", *numbers: int) -> None:
    row = (of, day, source, *(numbers or (5, 3, 0)))
    db.execute("INSERT INTO forecasts.usage_history VALUES (%s, %s, %s, %s, %s, %s)", row)


def filed(db: psycopg.Connection, of: UUID) -> dict[tuple[date, str], tuple[int, int, int]]:
    query = "SELECT * FROM forecasts.usage_history WHERE organization_id = %s"
    return {(row[1], row[2]): (row[3], row[4], row[5]) for row in db.execute(query, (of,)).fetchall()}


def counting(db: psycopg.Connection, of: UUID) -> dict[str, tuple[Any, ...]]:
    query = "SELECT source, api_calls_count, watchpoints_count, period_start, period_end FROM forecasts.rate_limits"
    return {row[0]: row[1:] for row in db.execute(query.encode() + b" WHERE organization_id = %s", (of,)).fetchall()}


def in_overage(db: psycopg.Connection, of: UUID) -> bool:
    row = db.execute("SELECT overage_started_at FROM forecasts.organizations WHERE id = %s", (of,)).fetchone()
    return row is not None and row[0] is not None


def many(db: psycopg.Connection, number: int, start: datetime = TODAY - DAY) -> None:
    db.execute(
        "INSERT INTO forecasts.rate_limits SELECT %s, 'source-' || n, n, 3, %s, %s FROM generate_series(1, %s) AS n",
        (organization(db), start, start + DAY, number),
    )


def test_ended_period_is_filed_by_source_and_a_new_one_begins(stage: Stage, db: psycopg.Connection) -> None:
    one = organization(db)
    period(db, one, "api", calls=40)
    period(db, one, "web", calls=2, watchpoints=1)
    assert stage.run("aggregate_usage", ONE)["items"] == 2
    assert filed(db, one) == {(YESTERDAY, "api"): (40, 3, 0), (YESTERDAY, "web"): (2, 1, 0)}
    fresh = (0, 0, TODAY, TODAY + DAY)
    assert counting(db, one) == {"api": fresh, "web": fresh}


def test_where_no_period_has_ended_nothing_is_filed(stage: Stage, db: psycopg.Connection) -> None:
    one = organization(db)
    period(db, one, start=TODAY)
    answer = stage.run("aggregate_usage", ONE)
    assert (answer["status"], answer["items"]) == ("succeeded", 0)
    assert (filed(db, one), counting(db, one)["api"]) == ({}, (5, 3, TODAY, TODAY + DAY))


def test_a_period_has_ended_after_its_end(stage: Stage, db: psycopg.Connection) -> None:
    one = organization(db)
    for source, seconds in [("before", -1), ("at", 0), ("after", 1)]:
        period(db, one, source, end=ONE + seconds * SECOND)
    stage.run("aggregate_usage", ONE)
    assert [source for _, source in filed(db, one)] == ["before"]


def test_usage_is_filed_under_the_day_its_period_belongs_to(stage: Stage, db: psycopg.Connection) -> None:
    """The day before the run would be wrong: the task may not have run for days, and periods begin at any time."""
    one = organization(db)
    period(db, one, "old", start=TODAY - 4 * DAY)
    period(db, one, "late", start=TODAY - SECOND)
    period(db, one, "long", start=TODAY - 2 * DAY + 5 * HOUR, end=TODAY)
    stage.run("aggregate_usage", ONE)
    assert set(filed(db, one)) == {(date(2026, 3, 6), "old"), (YESTERDAY, "late"), (date(2026, 3, 8), "long")}


def test_filing_a_day_twice_adds_counters_and_keeps_larger_gauge(stage: Stage, db: psycopg.Connection) -> None:
    one = organization(db)
    usage(db, one, YESTERDAY, "api", 100, 7, 2)
    usage(db, one, YESTERDAY, "web", 100, 1, 2)
    period(db, one, "api", calls=40, watchpoints=3)
    period(db, one, "web", calls=40, watchpoints=3)
    stage.run("aggregate_usage", ONE)
    assert filed(db, one) == {(YESTERDAY, "api"): (140, 7, 2), (YESTERDAY, "web"): (140, 3, 2)}


def test_a_second_run_files_nothing_twice(stage: Stage, db: psycopg.Connection) -> None:
    one = organization(db)
    period(db, one)
    stage.run("aggregate_usage", ONE)
    assert stage.run("aggregate_usage", ONE, force=True)["items"] == 0
    assert filed(db, one) == {(YESTERDAY, "api"): (5, 3, 0)}


def test_two_runs_at_once_file_each_period_once(stage: Stage, db: psycopg.Connection) -> None:
    many(db, 3000)
    answers = two_at_once(stage, "aggregate_usage", ONE, ONE + DAY)
    assert [answer["status"] for answer in answers] == ["succeeded"] * 2
    assert count(db, "forecasts.usage_history WHERE date = '2026-03-09'") == 3000
    assert db.execute("SELECT sum(api_calls) FROM forecasts.usage_history").fetchone() == (3000 * 3001 / 2,)


def test_a_row_in_use_is_waited_for_without_holding_others(stage: Stage, db: psycopg.Connection, dsn: str) -> None:
    one, two = organization(db), organization(db)
    period(db, one)
    period(db, two)
    with psycopg.connect(dsn) as api:
        api.execute(
            "UPDATE forecasts.rate_limits SET api_calls_count = api_calls_count + 1 WHERE organization_id = %s", (one,)
        )
        run = Thread(target=stage.run, args=("aggregate_usage", ONE))
        run.start()
        while run.is_alive() and not filed(db, two):
            pass
        api.commit()
    run.join()
    assert filed(db, one) == {(YESTERDAY, "api"): (6, 3, 0)}


def test_long_locked_row_is_reported_and_filed_later_under_its_day(
    stage: Stage, db: psycopg.Connection, dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = organization(db, overage_started_at=TODAY - 5 * DAY), organization(db)
    period(db, one)
    period(db, two)
    wait_for_no_lock(db)
    with psycopg.connect(dsn) as api:
        api.execute("UPDATE forecasts.rate_limits SET api_calls_count = 5000 WHERE organization_id = %s", (one,))
        assert stage.run("aggregate_usage", ONE)["items"] == 1
        assert [vars(record)["periods"] for record in caplog.records if record.message == "usage.left"] == [1]
        api.commit()
    assert in_overage(db, one)  # the day is not known yet

    assert stage.run("aggregate_usage", ONE + DAY)["items"] == 2
    assert filed(db, one) == {(YESTERDAY, "api"): (5000, 3, 0)}


def test_a_crash_between_pages_loses_and_doubles_nothing(stage: Stage, db: psycopg.Connection) -> None:
    """A page files and resets in one statement: a constraint that ends the run shows it."""
    many(db, 250)
    db.execute("ALTER TABLE forecasts.usage_history ADD CONSTRAINT trouble CHECK (source <> 'source-200')")
    with pytest.raises(psycopg.errors.CheckViolation):
        stage.run("aggregate_usage", ONE)
    totals = (
        "SELECT (SELECT coalesce(sum(api_calls), 0) FROM forecasts.usage_history) + "
        "(SELECT sum(api_calls_count) FROM forecasts.rate_limits)"
    )
    assert db.execute(totals.encode()).fetchone() == (250 * 251 / 2,)
    assert count(db, "forecasts.usage_history") == 100

    db.execute("ALTER TABLE forecasts.usage_history DROP CONSTRAINT trouble")
    assert stage.run("aggregate_usage", ONE)["items"] == 150
    assert db.execute("SELECT sum(api_calls) FROM forecasts.usage_history").fetchone() == (250 * 251 / 2,)


def test_a_past_run_files_what_had_ended_then(stage: Stage, db: psycopg.Connection) -> None:
    one, then = organization(db), ONE - 3 * DAY
    period(db, one, "early", start=TODAY - 4 * DAY)
    period(db, one, "late", start=TODAY - 2 * DAY)
    stage.run("aggregate_usage", reference_time=then.isoformat())
    assert set(filed(db, one)) == {(date(2026, 3, 6), "early")}
    assert counting(db, one)["early"] == (0, 0, TODAY - 3 * DAY, TODAY - 2 * DAY)


def test_a_run_goes_on_in_a_continuation_when_its_budget_ends(stage: Stage, db: psycopg.Connection) -> None:
    many(db, 150)
    assert stage.run("aggregate_usage", ONE, seconds=10.0)["more"] is True
    assert [answer["items"] for answer in stage.deliver(ONE)] == [150]


@pytest.mark.parametrize(
    ("sources", "ends"),
    [
        ({}, True),
        ({"api": (600, 6), "web": (400, 4)}, True),  # the limits themselves are within the plan
        ({"api": (600, 6), "web": (401, 4)}, False),
        ({"api": (600, 6), "web": (400, 5)}, False),
        ({"api": (1001, 0)}, False),
    ],
)
def test_overage_ends_after_a_day_within_plan_over_all_sources(
    stage: Stage, db: psycopg.Connection, sources: dict[str, tuple[int, int]], ends: bool
) -> None:
    plan(db, "pro", api_calls_per_day=1000, watchpoints=10)
    one = organization(db, overage_started_at=TODAY - 5 * DAY)
    for source, (calls, watchpoints) in sources.items():
        period(db, one, source, calls=calls, watchpoints=watchpoints)
    usage(db, one, YESTERDAY - DAY, "api", 9999, 99, 0)
    stage.run("aggregate_usage", ONE)
    assert in_overage(db, one) is not ends


def test_an_overage_goes_on_while_more_is_active_than_the_plan_has(stage: Stage, db: psycopg.Connection) -> None:
    """The gauge starts each day at zero: a day without a call would otherwise end an overage that continues."""
    plan(db, "small", watchpoints=1)
    one = organization(db, plan="small", overage_started_at=TODAY - 5 * DAY)
    watchpoint(db, one)
    watchpoint(db, one)
    watchpoint(db, one, status="paused", paused_at=TODAY)
    stage.run("aggregate_usage", ONE)
    assert in_overage(db, one)
    plan(db, "small", watchpoints=2)  # an upgrade
    stage.run("aggregate_usage", ONE + DAY)
    assert not in_overage(db, one)


@pytest.mark.parametrize(("started", "ends"), [(TODAY - SECOND, True), (TODAY, False), (TODAY + SECOND, False)])
def test_the_day_before_says_nothing_about_an_overage_that_began_after_it(
    stage: Stage, db: psycopg.Connection, started: datetime, ends: bool
) -> None:
    one = organization(db, overage_started_at=started)
    stage.run("aggregate_usage", ONE)
    assert in_overage(db, one) is not ends


def test_no_run_begins_an_overage(stage: Stage, db: psycopg.Connection) -> None:
    plan(db, "pro", api_calls_per_day=10)
    one = organization(db, plan="pro")
    period(db, one, calls=11)
    stage.run("aggregate_usage", ONE)
    assert not in_overage(db, one)
