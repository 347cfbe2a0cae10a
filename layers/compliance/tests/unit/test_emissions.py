"""Emissions are hours times the latest rate, rounded half away from zero; periods are checked by the calendar."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from compliance.reports.emissions import Generator, Period, StackTest, find_faults

YEAR = Period(date(2025, 1, 1), date(2025, 12, 31))
GENERATOR = Generator(
    id="g",
    identifier="G1",
    type=None,
    capacity_mw=None,
    fuel_type=None,
    hour_limit=None,
    record_count=1,
    hours=Decimal(1),
    fuel=Decimal(0),
)


def _tested(hours: str, *rates: str | None) -> Generator:
    tests = [StackTest(YEAR.end, {"nox": None if rate is None else Decimal(rate)}, None) for rate in rates]
    return replace(GENERATOR, hours=Decimal(hours), tests=tests)


@pytest.mark.parametrize(
    ("hours", "rate", "kilograms"),
    [
        ("1", "0.005", "0.01"),
        ("1", "-0.005", "-0.01"),
        ("1", "0.0049", "0.00"),
        ("1", "-0.004", "0.00"),
        ("100.5", "0.333", "33.47"),
        ("0", "7", "0.00"),
        ("1", None, None),
    ],
)
def test_kilograms_are_hours_times_the_rate(hours: str, rate: str | None, kilograms: str | None) -> None:
    found = _tested(hours, rate).emissions["nox"]
    assert (None if found is None else str(found)) == kilograms


def test_only_the_latest_test_counts() -> None:
    assert _tested("2", "3", "100").emissions["nox"] == Decimal("6.00")


@pytest.mark.parametrize(
    ("start", "end", "is_a_year"),
    [
        (date(2025, 1, 1), date(2025, 12, 31), True),
        (date(2025, 1, 1), date(2025, 12, 30), False),
        (date(2025, 1, 1), date(2026, 1, 1), False),
        (date(2025, 4, 1), date(2026, 3, 31), True),
        (date(2023, 3, 1), date(2024, 2, 29), True),
        (date(2024, 2, 29), date(2025, 2, 27), True),
        (date(2025, 12, 31), date(2025, 1, 1), False),
    ],
)
def test_period_is_twelve_months_less_a_day(start: date, end: date, is_a_year: bool) -> None:
    faults = find_faults(Period(start, end), [_tested("1", "1")])
    assert [fault["field"] for fault in faults] == ([] if is_a_year else ["reporting_period"])


@pytest.mark.parametrize(
    ("end", "deadline"),
    [
        (date(2025, 12, 31), date(2026, 1, 31)),
        (date(2026, 1, 30), date(2026, 1, 31)),
        (date(2026, 1, 31), date(2027, 1, 31)),
        (date(2026, 3, 31), date(2027, 1, 31)),
    ],
)
def test_deadline_is_the_first_31_january_after_the_period(end: date, deadline: date) -> None:
    assert Period(YEAR.start, end).submission_deadline == deadline


@pytest.mark.parametrize(("limit", "warned"), [("10", False), ("9.99", True), ("0", True), (None, False)])
def test_hours_over_the_limit_are_a_warning(limit: str | None, warned: bool) -> None:
    generator = replace(_tested("10", "1"), hour_limit=None if limit is None else Decimal(limit))
    assert [fault["severity"] for fault in find_faults(YEAR, [generator])] == ["WARNING"] * warned


def test_permit_without_generators_lacks_run_hours() -> None:
    [fault] = find_faults(YEAR, [])
    assert (fault["field"], fault["severity"], "generator_id" in fault) == ("run_hours", "ERROR", False)
