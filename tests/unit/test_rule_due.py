"""The laptop's clock knows when a rule is due and how long to wait."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from signalbox_laptop.event_sources.clock import wait_seconds
from signalbox_laptop.event_sources.rule import Rule

MADE = datetime(2026, 3, 1, 12, 3, 41, tzinfo=UTC)


def due_minutes(schedule: str, start: datetime, minutes: int) -> list[str]:
    rule = Rule("r", "arn", schedule, True, ())
    instants = [start + timedelta(minutes=index) for index in range(minutes)]
    return [f"{instant:%H:%M}" for instant in instants if rule.is_due(instant, MADE)]


@pytest.mark.parametrize(
    ("schedule", "due"),
    [
        ("cron(0/15 * * * ? *)", ["12:15", "12:30", "12:45", "13:00"]),
        ("cron(7/15 * * * ? *)", ["12:07", "12:22", "12:37", "12:52"]),
        ("cron(30 12 * * ? *)", ["12:30"]),
        # A rate counts from when the rule was made, 12:03, and does not fire in that minute.
        ("rate(15 minutes)", ["12:18", "12:33", "12:48", "13:03"]),
        ("rate(1 hour)", ["13:03"]),
    ],
)
def test_a_rule_is_due_at_its_own_minutes_only(schedule: str, due: list[str]) -> None:
    assert due_minutes(schedule, datetime(2026, 3, 1, 12, 1, tzinfo=UTC), 63) == due


def test_a_daily_rule_fires_once_on_the_day_that_clocks_change() -> None:
    # Berlin goes from 01:59 to 03:00 that night; rules are in UTC and do not notice.
    assert due_minutes("cron(30 1 * * ? *)", datetime(2026, 3, 29, 0, 0, tzinfo=UTC), 1440) == ["01:30"]


@pytest.mark.parametrize(
    ("second", "microsecond", "waits"), [(0, 0, 1.0), (30, 0, 1.0), (59, 250_000, 0.75), (59, 999_000, 0.001)]
)
def test_the_clock_never_sleeps_past_the_whole_minute_nor_long(second: int, microsecond: int, waits: float) -> None:
    now = datetime(2026, 3, 1, 12, 3, second, microsecond, tzinfo=UTC)
    assert wait_seconds(now) == pytest.approx(waits)
