"""Calculate what generators emitted in a period, and say what is wrong with the figures.

Emissions are in kg: hours times the kg an hour of the period's latest stack test, to two decimals, half away from zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Literal

from signalbox.calendars import add_months

POLLUTANTS = ("nox", "so2", "co", "particulates")
_CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Period:
    """Hold the first and the last day of what is reported."""

    start: date
    end: date

    @property
    def is_a_year(self) -> bool:
        return self.end == add_months(self.start, 12) - timedelta(days=1)

    @property
    def submission_deadline(self) -> date:
        """Return the first 31 January after the period."""
        deadline = date(self.end.year, 1, 31)
        return deadline if deadline > self.end else date(self.end.year + 1, 1, 31)


@dataclass(frozen=True, slots=True)
class StackTest:
    """Hold one test: the kg an hour of each pollutant, where it was measured."""

    test_date: date
    rates: Mapping[str, Decimal | None]  # by pollutant
    compliance_status: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator:
    """Hold a generator with its figures of the period."""

    id: str
    identifier: str | None
    type: str | None
    capacity_mw: Decimal | None
    fuel_type: str | None
    hour_limit: Decimal | None
    record_count: int
    hours: Decimal
    fuel: Decimal
    tests: Sequence[StackTest] = field(default_factory=list)  # the latest first

    @property
    def emissions(self) -> dict[str, Decimal | None]:
        """Return the kg of each pollutant, or None where no rate is known."""
        rates = self.tests[0].rates if self.tests else {}
        return {pollutant: _kilograms(self.hours, rates.get(pollutant)) for pollutant in POLLUTANTS}


def _kilograms(hours: Decimal, rate: Decimal | None) -> Decimal | None:
    # Adding 0 makes zero of a negative zero.
    return None if rate is None else (hours * rate).quantize(_CENT, ROUND_HALF_UP) + 0


def find_faults(period: Period, generators: Sequence[Generator]) -> list[dict[str, Any]]:
    """Return what is wrong with a report; it is valid where nothing is an error."""
    faults = [fault for generator in generators for fault in _faults_of(generator)]
    if not generators:
        faults.append(_fault("run_hours", "Missing data: the permit has no active generator"))
    if not period.is_a_year:
        faults.append(_fault("reporting_period", "The reporting period must be 12 months"))
    return faults


def _faults_of(generator: Generator) -> Iterator[dict[str, Any]]:
    name, id_ = generator.identifier or generator.id, generator.id
    if generator.record_count == 0:
        yield _fault("run_hours", f"Missing data: no run-hour records for generator {name}", id_)
    if not generator.tests:
        yield _fault("stack_tests", f"Missing data: no stack test for generator {name}", id_)
    for pollutant, kilograms in generator.emissions.items():
        if kilograms is not None and kilograms < 0:
            yield _fault("emissions", f"Emissions of {pollutant} are negative for generator {name}", id_)
    if generator.hour_limit is not None and generator.hours > generator.hour_limit:
        words = f"Run hours of generator {name} exceed the annual limit: {generator.hours} of {generator.hour_limit}"
        yield _fault("run_hours", words, id_, "WARNING")


def _fault(
    name: str, error: str, generator_id: str | None = None, severity: Literal["ERROR", "WARNING"] = "ERROR"
) -> dict[str, Any]:
    fault = {"field": name, "error": error, "severity": severity}
    return fault if generator_id is None else fault | {"generator_id": generator_id}
