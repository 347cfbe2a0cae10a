"""Write an annual emissions report: as data for its row, as a PDF in the sections of the regulator, and as CSV."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from io import StringIO
from typing import Any

from compliance.reports.emissions import POLLUTANTS, Generator, Period, StackTest
from compliance.reports.pdf import write_pdf
from signalbox.documents.report import Facts, Heading, Paragraph, Part, Table

_CSV_COLUMNS = (
    "generator_id",
    "generator_identifier",
    "generator_type",
    "capacity_mw",
    "fuel_type",
    "period_start",
    "period_end",
    "run_hours",
    "run_hour_limit",
    "fuel_consumption",
    *(f"{pollutant}_kg" for pollutant in POLLUTANTS),
    "latest_stack_test",
    "compliance_status",
)


@dataclass(frozen=True, slots=True)
class Incident:
    """Hold what happened to a generator on a day."""

    generator_id: str
    day: date
    description: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmissionsReport:
    """Hold what is reported for one permit."""

    company: str
    site: str
    site_id: str | None
    document: str
    permit_number: str
    period: Period
    generators: Sequence[Generator]
    incidents: Sequence[Incident]
    faults: Sequence[Mapping[str, Any]]

    @property
    def is_valid(self) -> bool:
        return all(fault["severity"] != "ERROR" for fault in self.faults)

    @property
    def total_hours(self) -> Decimal:
        return sum((generator.hours for generator in self.generators), Decimal(0))

    @property
    def names(self) -> dict[str, str]:
        """Return what people call each generator, by its id."""
        return {generator.id: generator.identifier or generator.id for generator in self.generators}


def generator_data(report: EmissionsReport) -> list[dict[str, Any]]:
    return [
        {
            "id": one.id,
            "identifier": one.identifier,
            "type": one.type,
            "capacity_mw": number(one.capacity_mw),
            "total_run_hours": number(one.hours),
            "fuel_type": one.fuel_type,
            "fuel_consumption": number(one.fuel),
            "emissions": {pollutant: number(kilograms) for pollutant, kilograms in one.emissions.items()},
            "stack_tests": [_test_data(test) for test in one.tests],
        }
        for one in report.generators
    ]


def _test_data(test: StackTest) -> dict[str, Any]:
    results = {f"{pollutant}_rate": number(test.rates[pollutant]) for pollutant in POLLUTANTS}
    return {
        "test_date": test.test_date.isoformat(),
        "results": results,
        "compliance_status": test.compliance_status,
    }


def emissions_data(report: EmissionsReport) -> list[dict[str, Any]]:
    """Return the totals of the generators that have a stack test."""
    return [
        {"generator_id": one.id} | {f"{pollutant}_total": number(total) for pollutant, total in one.emissions.items()}
        for one in report.generators
        if one.tests
    ]


def fuel_data(report: EmissionsReport) -> list[dict[str, Any]]:
    return [
        {"generator_id": one.id, "fuel_type": one.fuel_type, "total": number(one.fuel)} for one in report.generators
    ]


def incidents_data(report: EmissionsReport) -> list[dict[str, Any]]:
    return [
        {"date": one.day.isoformat(), "description": one.description, "generator_id": one.generator_id}
        for one in report.incidents
    ]


def number(value: Decimal | None) -> float | None:
    """Return a number as JSON has it."""
    return None if value is None else float(value)


def write_csv(report: EmissionsReport) -> bytes:
    """Return a line for each generator."""
    file = StringIO()
    writer = csv.writer(file)
    writer.writerow(_CSV_COLUMNS)
    writer.writerows(_csv_row(report.period, one) for one in report.generators)
    return file.getvalue().encode()


def _csv_row(period: Period, one: Generator) -> list[Any]:
    latest = one.tests[0] if one.tests else None
    return [
        *(one.id, one.identifier, one.type, one.capacity_mw, one.fuel_type),
        *(period.start, period.end, one.hours, one.hour_limit, one.fuel),
        *one.emissions.values(),
        *((latest.test_date, latest.compliance_status) if latest else (None, None)),
    ]


def write_report(report: EmissionsReport) -> bytes:
    """Return the PDF; the same report gives the same bytes."""
    sections = (_details, _period, _run_hours, _fuel, _emissions, _tests, _incidents)
    return write_pdf("Annual Emissions Report", [part for section in sections for part in section(report)])


def _details(report: EmissionsReport) -> list[Part]:
    rows = [
        [_shown(one.identifier), _shown(one.type), _shown(one.capacity_mw), _shown(one.fuel_type)]
        for one in report.generators
    ]
    facts = [
        ("Company", report.company),
        ("Site", report.site),
        ("Document", report.document),
        ("Permit number", report.permit_number),
    ]
    return [
        Heading("Section 1: Generator Details"),
        Facts(facts),
        Table(["Generator", "Type", "Capacity (MW)", "Fuel"], rows),
    ]


def _period(report: EmissionsReport) -> list[Part]:
    period = report.period
    facts = [
        ("From", period.start.isoformat()),
        ("To", period.end.isoformat()),
        ("Submission deadline", period.submission_deadline.isoformat()),
        ("Validated", "yes" if report.is_valid else "no"),
    ]
    faults = [Paragraph(f"{fault['severity']}: {fault['error']}") for fault in report.faults]
    return [Heading("Section 2: Reporting Period"), Facts(facts), *faults]


def _run_hours(report: EmissionsReport) -> list[Part]:
    rows = [
        [_shown(one.identifier), _shown(one.hours), _shown(one.hour_limit), str(one.record_count)]
        for one in report.generators
    ]
    table = Table(["Generator", "Run hours (h)", "Annual limit (h)", "Records"], rows)
    total = Facts([("Total run hours (h)", _shown(report.total_hours))])
    return [Heading("Section 3: Run-Hours Summary"), table, total]


def _fuel(report: EmissionsReport) -> list[Part]:
    rows = [[_shown(one.identifier), _shown(one.fuel_type), _shown(one.fuel)] for one in report.generators]
    return [Heading("Section 4: Fuel Consumption"), Table(["Generator", "Fuel", "Consumption"], rows)]


def _emissions(report: EmissionsReport) -> list[Part]:
    rows = [[_shown(one.identifier), *map(_shown, one.emissions.values())] for one in report.generators]
    columns = ["Generator", "NOx (kg)", "SO2 (kg)", "CO (kg)", "Particulates (kg)"]
    return [Heading("Section 5: Emissions Data"), Table(columns, rows)]


def _tests(report: EmissionsReport) -> list[Part]:
    rows = [
        [
            _shown(one.identifier),
            _shown(test.test_date),
            *(_shown(test.rates[pollutant]) for pollutant in POLLUTANTS),
            _shown(test.compliance_status),
        ]
        for one in report.generators
        for test in one.tests
    ]
    columns = ["Generator", "Date", "NOx (kg/h)", "SO2 (kg/h)", "CO (kg/h)", "Particulates (kg/h)", "Status"]
    return [Heading("Section 6: Stack Test Results"), Table(columns, rows)]


def _incidents(report: EmissionsReport) -> list[Part]:
    rows = [[_shown(one.day), report.names[one.generator_id], _shown(one.description)] for one in report.incidents]
    found: Part = Table(["Date", "Generator", "Description"], rows) if rows else Paragraph("None.")
    return [Heading("Section 7: Incidents/Breakdowns"), found]


def _shown(value: object) -> str:
    """Return a value as people read it; a dash is an unknown one."""
    return "-" if value is None else str(value)
