"""Business days follow a region's calendar, and months are counted from the day that is given."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from signalbox.calendars import (
    add_business_days,
    add_months,
    business_days_between,
    is_business_day,
    next_business_day,
    today,
)
from signalbox.errors import Refused

ENGLAND = "GB-ENG"
# Christmas of 2026: 25 December is a Friday, so that Boxing Day's substitute is Monday, the 28th.
FRIDAY, SATURDAY, MONDAY, TUESDAY = (date(2026, 12, day) for day in (25, 26, 28, 29))


def test_the_substitute_of_a_holiday_in_a_weekend_is_no_business_day() -> None:
    assert [is_business_day(ENGLAND, day) for day in (FRIDAY, SATURDAY, MONDAY, TUESDAY)] == [False] * 3 + [True]


def test_two_substitutes_follow_one_another() -> None:
    """Christmas Day of 2027 is a Saturday: both holidays are taken on Monday and Tuesday."""
    assert next_business_day(ENGLAND, date(2027, 12, 24)) == date(2027, 12, 29)


@pytest.mark.parametrize(
    ("start", "n", "end"),
    [
        (date(2026, 12, 24), 1, TUESDAY),
        (TUESDAY, -1, date(2026, 12, 24)),
        (SATURDAY, 1, TUESDAY),
        (SATURDAY, 0, SATURDAY),
        (date(2026, 12, 31), 1, date(2027, 1, 4)),  # over a year's end, in which 1 January is a Friday
        (date(2024, 2, 28), 2, date(2024, 3, 1)),  # over a leap day
    ],
)
def test_business_days_are_counted_both_ways(start: date, n: int, end: date) -> None:
    assert add_business_days(ENGLAND, start, n) == end


def test_days_between_lead_from_the_first_to_the_last() -> None:
    assert business_days_between(ENGLAND, date(2026, 12, 24), TUESDAY) == 1
    assert business_days_between(ENGLAND, TUESDAY, date(2026, 12, 24)) == -1
    assert business_days_between(ENGLAND, FRIDAY, MONDAY) == 0


def test_a_subdivision_has_holidays_of_its_own() -> None:
    epiphany = date(2026, 1, 6)
    assert is_business_day("DE", epiphany)
    assert not is_business_day("DE-BY", epiphany)


def test_a_region_has_its_own_weekend() -> None:
    friday, sunday = date(2026, 3, 6), date(2026, 3, 8)
    assert (is_business_day("SA", friday), is_business_day("SA", sunday)) == (False, True)


@pytest.mark.parametrize("region", ["", "England", "XX", "GB-XX", "gb-eng", "GB-", "NYSE", "DE\0", "../DE", "G" * 200])
def test_an_unknown_region_is_refused(region: str) -> None:
    with pytest.raises(Refused, match="is not known; valid are") as refused:
        add_business_days(region, TUESDAY, 0)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("day", [date.min, date.max])
def test_a_year_without_a_calendar_is_refused(day: date) -> None:
    with pytest.raises(Refused, match="is known for the years"):
        next_business_day(ENGLAND, day)


@pytest.mark.parametrize(
    ("day", "n", "later"),
    [
        (date(2026, 1, 31), 1, date(2026, 2, 28)),
        (date(2024, 1, 31), 1, date(2024, 2, 29)),
        (date(2026, 1, 31), 2, date(2026, 3, 31)),
        (date(2026, 3, 31), -1, date(2026, 2, 28)),
        (date(2024, 2, 29), 12, date(2025, 2, 28)),
        (date(2026, 12, 15), 1, date(2027, 1, 15)),
        (date(2026, 1, 15), -1, date(2025, 12, 15)),
        (date(2026, 5, 31), 0, date(2026, 5, 31)),
    ],
)
def test_months_are_cut_at_the_months_end(day: date, n: int, later: date) -> None:
    assert add_months(day, n) == later


@pytest.mark.parametrize("n", [12 * 8000, -12 * 2026])
def test_months_beyond_all_calendars_are_refused(n: int) -> None:
    with pytest.raises(Refused, match="out of range"):
        add_months(date(2026, 1, 1), n)


def test_today_is_that_of_the_zone() -> None:
    now = datetime(2026, 3, 10, 23, 30, tzinfo=UTC)
    days = [today(zone, now).day for zone in ("America/New_York", "UTC", "Europe/Berlin")]
    assert days == [10, 10, 11]


@pytest.mark.parametrize("zone", ["", "Berlin", "../../etc/passwd", "Europe/Berlin\0"])
def test_an_unknown_zone_is_refused(zone: str) -> None:
    with pytest.raises(Refused, match="time zone"):
        today(zone, datetime(2026, 3, 10, tzinfo=UTC))


def test_a_time_without_a_zone_is_no_instant() -> None:
    with pytest.raises(Refused, match="no instant"):
        today("UTC", datetime(2026, 3, 10))  # noqa: DTZ001 - on purpose
