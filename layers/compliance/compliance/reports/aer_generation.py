"""Write the annual emissions report of a permit with generators.

read the figures → check them → write the files → store the report and tell who asked

A report with faults is written, too: its row lists them. The report's id is the job's, so a repeat finds its row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from compliance.company.files import files_of
from compliance.company.notify import Notification, notify
from compliance.company.people import People, Person
from compliance.reports import aer_report
from compliance.reports.aer_report import EmissionsReport, Incident
from compliance.reports.emissions import POLLUTANTS, Generator, Period, StackTest, find_faults
from signalbox import Completed, JobContext, JobPayload, Permanent
from signalbox.packs.outcome import OutputFile
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)


class AerGeneration(JobPayload):
    """Say which permit, and over which period."""

    document_id: UUID
    company_id: UUID
    reporting_period_start: date
    reporting_period_end: date
    output_format: Literal["PDF", "CSV", "BOTH"] = "BOTH"
    include_draft_data: bool = False
    requested_by: UUID | None = None


def aer_generation(context: JobContext) -> Completed:
    """Return the report's id, whether it is valid, and its faults."""
    payload: AerGeneration = context.payload
    if (known := context.db.execute(SQL["known"], _values(context)).fetchone()) is not None:
        return _completed(context, *known)
    people = People.of(context.db, str(payload.company_id))
    told = people.with_role("OWNER") if payload.requested_by is None else [_requester(people, payload)]
    context.note(step="read")
    report = _read(context)
    context.note(step="write", generators=len(report.generators), faults=len(report.faults))
    pdf, table = _write(context, report)
    context.note(step="store")
    with context.db.transaction():
        _store(context, report, pdf, table)
        _tell(context, report, told, pdf)
    written = [file for file in (pdf, table) if file is not None]
    return _completed(context, report.is_valid, report.faults, report.total_hours, written)


def _completed(
    context: JobContext, is_valid: bool, faults: Any, hours: Decimal, written: Sequence[OutputFile] = ()
) -> Completed:
    result = {"aer_id": context.key, "is_validated": is_valid, "validation_errors": list(faults)}
    return Completed(result | {"total_run_hours": aer_report.number(hours)}, written)


def _values(context: JobContext) -> dict[str, Any]:
    payload: AerGeneration = context.payload
    return {
        "aer_id": context.key,
        "document_id": payload.document_id,
        "company_id": payload.company_id,
        "start": payload.reporting_period_start,
        "end": payload.reporting_period_end,
        "drafts": payload.include_draft_data,
        "requested_by": payload.requested_by,
    }


def _requester(people: People, payload: AerGeneration) -> Person:
    requester = people.one(payload.requested_by)
    if requester is None:
        raise Permanent(f"user {payload.requested_by} has no role in company {payload.company_id}")
    return requester


def _read(context: JobContext) -> EmissionsReport:
    """Read the permit and its figures; refuse what no report can be made of."""
    payload: AerGeneration = context.payload
    found = context.db.execute(SQL["document"], _values(context)).fetchone()
    if found is None:
        raise Permanent(f"document {payload.document_id} does not exist in company {payload.company_id}")
    company, site, title, permit_number, site_id = found
    period = Period(payload.reporting_period_start, payload.reporting_period_end)
    try:
        generators = _read_generators(context)
        faults = find_faults(period, generators)
    except ArithmeticError:
        raise Permanent(f"document {payload.document_id} has hours or rates that can't be multiplied") from None
    rows = context.db.execute(SQL["incidents"], _values(context) | {"generators": [one.id for one in generators]})
    return EmissionsReport(
        company=company or "-",
        site=site or "-",
        site_id=site_id,
        document=title or "-",
        permit_number=permit_number or "-",
        period=period,
        generators=generators,
        incidents=[Incident(*row) for row in rows],
        faults=faults,
    )


def _read_generators(context: JobContext) -> list[Generator]:
    with context.db.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(SQL["generators"], _values(context)).fetchall()
    tests: dict[str, list[StackTest]] = defaultdict(list)
    values = _values(context) | {"generators": [row["id"] for row in rows]}
    for generator_id, day, *rates, status in context.db.execute(SQL["tests"], values):
        tests[generator_id].append(StackTest(day, dict(zip(POLLUTANTS, rates, strict=True)), status))
    generators = []
    for number, row in enumerate(rows, 1):
        context.report(80 * number // len(rows), f"Processing generator {number}/{len(rows)}")
        generators.append(Generator(**row, tests=tests[row["id"]]))
    return generators


def _write(context: JobContext, report: EmissionsReport) -> tuple[OutputFile | None, OutputFile | None]:
    """Write the files that were asked for: the PDF, and the CSV."""
    payload: AerGeneration = context.payload
    files = files_of(context)
    year = report.period.end.year
    folder = f"aer-documents/{payload.company_id}/{payload.document_id}/{context.key}"
    pdf, table = None, None
    if payload.output_format != "CSV":
        pdf = files.write(f"{folder}/aer-{year}.pdf", aer_report.write_report(report), "application/pdf")
    if payload.output_format != "PDF":
        table = files.write(f"{folder}/aer-{year}-data.csv", aer_report.write_csv(report), "text/csv")
    return pdf, table


def _store(context: JobContext, report: EmissionsReport, pdf: OutputFile | None, table: OutputFile | None) -> None:
    values = {
        "submission_deadline": report.period.submission_deadline,
        "generator_data": Jsonb(aer_report.generator_data(report)),
        "fuel_data": Jsonb(aer_report.fuel_data(report)),
        "emissions_data": Jsonb(aer_report.emissions_data(report)),
        "incidents_data": Jsonb(aer_report.incidents_data(report)),
        "total_hours": report.total_hours,
        "is_validated": report.is_valid,
        "faults": Jsonb(report.faults),
        "pdf_path": pdf and pdf.key,
        "csv_path": table and table.key,
    }
    context.db.execute(SQL["store"], _values(context) | values)


def _tell(context: JobContext, report: EmissionsReport, told: Sequence[Person], pdf: OutputFile | None) -> None:
    payload: AerGeneration = context.payload
    company_id = str(payload.company_id)
    if not told:
        context.log.warning("compliance.recipient_missing", extra={"company_id": company_id, "aer_id": context.key})
    period = f"{payload.reporting_period_start} - {payload.reporting_period_end}"
    notify(
        context,
        company_id,
        [
            Notification(
                to=person,
                channel="IN_APP",
                job_type=context.job.job_type,
                entity_type="AER_DOCUMENT",
                entity_id=context.key,
                parts=context.key,
                alert_type="SYSTEM",
                severity="INFO",
                title="AER Generated Successfully",
                message=f"AER generated successfully for period {period}",
                site_id=report.site_id,
                action_url=f"/aer-documents/{context.key}/download",
                metadata={"generated_file_path": pdf and pdf.key},
            )
            for person in told
        ],
    )
