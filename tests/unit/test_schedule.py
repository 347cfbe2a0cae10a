"""Schedules may end, and follow EventBridge's own reading."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from signalbox.errors import ScheduleRefused
from signalbox.packs.schedule import Schedule

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)  # a Tuesday


def test_a_schedule_that_names_its_years_has_no_fires_after_them() -> None:
    ended = Schedule.parse("cron(0 0 1 1 ? 2020-2025)")
    assert list(ended.between(NOON, NOON + timedelta(days=900))) == []
    assert len(list(ended.between(NOON - timedelta(days=900), NOON))) == 2
    assert ended.slot_of(NOON) == datetime(2025, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "day"),
    [("cron(0 12 ? * 1 *)", 8), ("cron(0 12 ? * 3 *)", 10), ("cron(0 12 ? * 7 *)", 7), ("cron(0 12 ? * L *)", 7)],
)
def test_the_week_is_counted_from_sunday_as_one(expression: str, day: int) -> None:
    assert Schedule.parse(expression).slot_of(NOON).day == day


@pytest.mark.parametrize(
    "expression",
    [
        "cron(0 12 ? * 8 *)",
        "cron(0 12 ? * 0 *)",
        "cron(0 12 15W * ? *)",
        "rate(0 minutes)",
        "rate(1 minutes)",
        "rate(2 day)",
    ],
)
def test_what_eventbridge_refuses_or_we_cannot_read_is_refused_by_name(expression: str) -> None:
    with pytest.raises(ScheduleRefused) as caught:
        Schedule.parse(expression)
    assert expression in str(caught.value)
