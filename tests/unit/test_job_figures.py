"""Figures add up, and stay empty where there is no data."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from signalbox.stats.figures import Figures, add_up
from signalbox.stats.histogram import BUCKETS
from signalbox.stats.statistics import floor, period_of

SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)


def bucket(place: int, count: int) -> tuple[int, ...]:
    return tuple(count if at == place else 0 for at in range(BUCKETS))


def test_figures_of_two_lanes_are_the_figures_of_both() -> None:
    one = Figures(2, 1, 1, total_ms=10, most_ms=8, durations=bucket(3, 2), most_memory_mb=80)
    other = Figures(3, 2, 0, 1, total_ms=50, most_ms=30, durations=bucket(8, 3), cpu_ms=7)
    both = add_up([one, other])
    assert (both.begun, both.completed, both.failed, both.timed_out, both.ended) == (5, 3, 1, 1, 5)
    assert (both.total_ms, both.most_ms, both.most_memory_mb, both.cpu_ms) == (60, 30, 80, 7)
    assert (both.durations[3], both.durations[8]) == (2, 3)
    assert both.average_ms == 12
    assert both.failure_rate == 0.4


def test_nothing_adds_up_to_nothing() -> None:
    nothing = add_up([])
    assert nothing == Figures()
    assert (nothing.average_ms, nothing.failure_rate, nothing.duration_ms(0.95), nothing.wait_ms(0.5)) == (None,) * 4
    assert nothing.as_json()["most_ms"] is None


def test_what_was_given_back_or_waits_is_no_failure() -> None:
    assert Figures(completed=9, failed=1, others=100, cancelled=5).failure_rate == 0.1


@pytest.mark.parametrize(
    ("window", "period"),
    [
        (3 * HOUR, "minute"),
        (3 * HOUR + SECOND, "hour"),
        (8 * DAY, "hour"),
        (8 * DAY + SECOND, "day"),
    ],
)
def test_window_has_the_finest_kept_period_within_the_points_limit(window: timedelta, period: str) -> None:
    assert period_of(window) == period


def test_periods_begin_in_utc() -> None:
    at = datetime(2026, 3, 10, 1, 59, 59, 5, tzinfo=UTC).astimezone()
    assert floor(at, "minute") == datetime(2026, 3, 10, 1, 59, tzinfo=UTC)
    assert floor(at, "hour") == datetime(2026, 3, 10, 1, tzinfo=UTC)
    assert floor(at, "day") == datetime(2026, 3, 10, tzinfo=UTC)
