"""The command line reads and shows times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox_cli.views.times import (
    TimeRefused,
    read_instant,
    read_span,
    show_age,
    show_duration,
    show_instant,
    show_span,
)

CLOCK = datetime(2026, 11, 18, 12, 0, 30, 250_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("now", datetime(2026, 11, 18, 12, 0, 30, tzinfo=UTC)),
        ("90s", datetime(2026, 11, 18, 11, 59, 0, tzinfo=UTC)),
        ("2h", datetime(2026, 11, 18, 10, 0, 30, tzinfo=UTC)),
        ("1d12h", datetime(2026, 11, 17, 0, 0, 30, tzinfo=UTC)),
        ("1w", datetime(2026, 11, 11, 12, 0, 30, tzinfo=UTC)),
        ("2026-01-31T06:00:00Z", datetime(2026, 1, 31, 6, tzinfo=UTC)),
        ("2026-01-31T06:00Z", datetime(2026, 1, 31, 6, tzinfo=UTC)),
        ("2026-01-31T06:00:00+01:00", datetime(2026, 1, 31, 5, tzinfo=UTC)),
    ],
)
def test_a_time_is_read_in_utc(text: str, instant: datetime) -> None:
    assert read_instant(text, CLOCK) == instant
    assert read_instant(text, CLOCK).tzinfo is UTC


def test_time_without_zone_is_refused_with_a_suggestion() -> None:
    with pytest.raises(TimeRefused, match="has no time zone; in UTC it is 2026-01-31T06:00:00Z"):
        read_instant("2026-01-31T06:00", CLOCK)
    with pytest.raises(TimeRefused, match="in UTC it is 2026-01-31T00:00:00Z"):
        read_instant("2026-01-31", CLOCK)


@pytest.mark.parametrize("text", ["", "yesterday", "2x", "h", "2h3d", "-2h", "2026-13-01T00:00Z", "1.5h"])
def test_what_is_no_time_is_refused_with_the_forms_there_are(text: str) -> None:
    with pytest.raises(TimeRefused, match=r"is not a time, such as .* now, or how long ago: 10m, 2h, 3d"):
        read_instant(text, CLOCK)


@pytest.mark.parametrize("text", ["9999999w", "99999999999999999999d", "9" * 500 + "s", "0001-01-01T00:00:00+14:00"])
def test_a_time_beyond_the_calendar_is_refused(text: str) -> None:
    with pytest.raises(TimeRefused):
        read_instant(text, CLOCK)


def test_a_text_is_a_span_or_not() -> None:
    assert read_span("2h30m") == timedelta(hours=2, minutes=30)
    assert read_span("h") is None


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2200, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_what_is_shown_can_be_typed_again(instant: datetime) -> None:
    to_the_millisecond = instant.replace(microsecond=instant.microsecond // 1000 * 1000)
    assert read_instant(show_instant(to_the_millisecond), CLOCK) == to_the_millisecond


@pytest.mark.parametrize(
    ("instant", "shown"),
    [
        ("2026-01-31T06:00:00+00:00", "2026-01-31T06:00Z"),
        ("2026-01-31T06:00:07+01:00", "2026-01-31T05:00:07Z"),
        ("2026-01-31T06:00:07.123456+00:00", "2026-01-31T06:00:07.123Z"),
    ],
)
def test_an_instant_is_shown_as_short_as_it_is_exact(instant: str, shown: str) -> None:
    assert show_instant(instant) == shown


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1.0 s"),
        (59_940, "59.9 s"),
        (59_960, "1 min"),
        (185_000, "3 min 5 s"),
        (3_600_000, "1 h"),
        (7_385_000, "2 h 3 min"),
        (90_000_000, "1 d 1 h"),
    ],
)
def test_a_duration_has_at_most_two_units(milliseconds: int, shown: str) -> None:
    assert show_duration(milliseconds) == shown


def test_no_time_at_all_is_shown_too() -> None:
    assert show_span(timedelta(0)) == "0 s"


@pytest.mark.parametrize(
    ("ago", "shown"),
    [
        (timedelta(seconds=0.4), "now"),
        (timedelta(seconds=-3), "now"),
        (timedelta(seconds=42), "42 s ago"),
        (timedelta(seconds=61), "1 min ago"),
        (timedelta(minutes=119), "119 min ago"),
        (timedelta(hours=3), "3 h ago"),
        (timedelta(days=3), "3 d ago"),
    ],
)
def test_age_is_shown_roughly(ago: timedelta, shown: str) -> None:
    assert show_age(CLOCK - ago, CLOCK) == shown
