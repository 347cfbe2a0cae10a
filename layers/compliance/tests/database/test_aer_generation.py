"""An annual emissions report is calculated from the period's records, written once, and told of."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from compliance.reports import aer_report, pdf
from signalbox import JobContext
from signalbox.documents.pdf_text import read_pages
from signalbox.testing.stage import Stage
from tests.support.aws import shared_client
from tests.support.compliance_rows import Workforce, add, rows

YEAR = {"reporting_period_start": "2025-01-01", "reporting_period_end": "2025-12-31"}


class Plant:
    """Hold a permit with generators, and ask for its report."""

    def __init__(self, people: Workforce, stage: Stage, bucket: str, moto: str) -> None:
        self.people, self.stage, self.bucket, self.db = people, stage, bucket, people.db
        self.s3 = shared_client("s3", moto)
        self.document_id = people.document(title="MCPD permit", permit_number="MCPD/7")

    def generator(self, name: str = "G1", **fields: Any) -> str:
        known = {"document_id": self.document_id, "generator_identifier": name, "fuel_type": "Diesel"}
        return add(self.db, "generators", **self.people.ids | known | fields)

    def ran(self, generator_id: str, day: date, hours: object, fuel: object = 0, **fields: Any) -> None:
        records = {"recording_date": day, "hours_recorded": hours, "fuel_consumption": fuel}
        add(self.db, "run_hour_records", generator_id=generator_id, **records | fields)

    def tested(self, generator_id: str, day: date, nox: object, **fields: Any) -> None:
        add(self.db, "stack_tests", generator_id=generator_id, test_date=day, nox_rate=nox, **fields)

    def submit(self, **fields: Any) -> str:
        asked = {"document_id": self.document_id, "company_id": self.people.company_id}
        return self.stage.submit(
            "aer_generation", payload=asked | YEAR | {"requested_by": self.people.owner_id} | fields
        )

    def report(self, **fields: Any) -> dict[str, Any]:
        job = self.stage.finish(self.submit(**fields))
        assert job["status"] == "completed", job["error_details"]
        result: dict[str, Any] = job["result"]
        return result

    def keys(self) -> list[str]:
        return sorted(found["Key"] for found in self.s3.list_objects_v2(Bucket=self.bucket).get("Contents", []))

    def file(self, key: str) -> bytes:
        data: bytes = self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        return data


@pytest.fixture
def plant(people: Workforce, stage: Stage, bucket: str, moto: str) -> Plant:
    return Plant(people, stage, bucket, moto)


def test_figures_are_those_calculated_by_hand(plant: Plant, people: Workforce, db: psycopg.Connection) -> None:
    first = plant.generator(annual_run_hour_limit=500)
    second = plant.generator("G2")
    plant.ran(first, date(2025, 1, 1), "100.5", 40)
    plant.ran(first, date(2025, 12, 31), "20.25", 2)
    plant.ran(first, date(2026, 1, 1), 1000)
    plant.ran(second, date(2025, 6, 1), 10)
    plant.tested(first, date(2025, 3, 1), "9.9")
    plant.tested(first, date(2025, 9, 1), "0.3333", so2_rate="0.001", particulates_rate=0, compliance_status="PASS")
    plant.tested(first, date(2026, 1, 1), "7")
    plant.tested(second, date(2025, 9, 1), "0.0005")
    add(db, "incidents", generator_id=first, incident_date=date(2025, 5, 5), description="Fuel leak")
    result = plant.report()
    assert (result["is_validated"], result["validation_errors"], result["total_run_hours"]) == (True, [], 130.75)
    names = (
        "id",
        "total_run_hours",
        "emissions_data",
        "fuel_consumption_data",
        "incidents_data",
        "status",
        "created_by",
    )
    [found] = rows(db, "aer_documents", *names, "submission_deadline")
    totals = [  # 120.75 h of 0.3333 kg/h are 40.245975 kg, of 0.001 kg/h 0.12075 kg; 10 h of 0.0005 kg/h are 0.005 kg
        {"generator_id": first, "nox_total": 40.25, "so2_total": 0.12, "co_total": None, "particulates_total": 0},
        {"generator_id": second, "nox_total": 0.01, "so2_total": None, "co_total": None, "particulates_total": None},
    ]
    assert (str(found[0]), found[1], found[2]) == (result["aer_id"], Decimal("130.75"), totals)
    assert found[3] == [
        {"generator_id": first, "fuel_type": "Diesel", "total": 42},
        {"generator_id": second, "fuel_type": "Diesel", "total": 0},
    ]
    assert found[4] == [{"date": "2025-05-05", "description": "Fuel leak", "generator_id": first}]
    assert (found[5], str(found[6]), found[7]) == ("DRAFT", people.owner_id, date(2026, 1, 31))


def test_files_hold_the_sections_and_a_line_for_each_generator(plant: Plant, db: psycopg.Connection) -> None:
    generator = plant.generator()
    plant.ran(generator, date(2025, 2, 1), "12.50")
    plant.tested(generator, date(2025, 2, 2), 2)
    aer_id = plant.report()["aer_id"]
    folder = f"aer-documents/{plant.people.company_id}/{plant.document_id}/{aer_id}"
    assert plant.keys() == [f"{folder}/aer-2025-data.csv", f"{folder}/aer-2025.pdf"]
    assert rows(db, "aer_documents", "generated_file_path", "generated_csv_path") == [
        (f"{folder}/aer-2025.pdf", f"{folder}/aer-2025-data.csv")
    ]
    text = "\n".join(read_pages(plant.file(f"{folder}/aer-2025.pdf"), most_pages=10))
    for number in range(1, 8):
        assert f"Section {number}: " in text
    header, line = plant.file(f"{folder}/aer-2025-data.csv").decode().splitlines()
    found = dict(zip(header.split(","), line.split(","), strict=True))
    assert (found["run_hours"], found["nox_kg"], found["so2_kg"]) == ("12.50", "25.00", "")


@pytest.mark.parametrize(("asked", "endings"), [("PDF", ("pdf", None)), ("CSV", (None, "csv"))])
def test_only_the_format_asked_for_is_written(
    plant: Plant, db: psycopg.Connection, asked: str, endings: tuple[str | None, str | None]
) -> None:
    plant.report(output_format=asked)
    [paths] = rows(db, "aer_documents", "generated_file_path", "generated_csv_path")
    assert tuple(path and path.rpartition(".")[2] for path in paths) == endings
    assert plant.keys() == [path for path in paths if path]


def test_draft_records_count_only_where_asked_for(plant: Plant) -> None:
    generator = plant.generator()
    plant.ran(generator, date(2025, 2, 1), 5)
    plant.ran(generator, date(2025, 2, 2), 7, is_draft=True)
    plant.tested(generator, date(2025, 2, 2), 2, is_draft=True)
    without, with_drafts = plant.report(), plant.report(include_draft_data=True)
    assert (without["total_run_hours"], with_drafts["total_run_hours"]) == (5, 12)
    assert ([one["field"] for one in without["validation_errors"]], with_drafts["validation_errors"]) == (
        ["stack_tests"],
        [],
    )


def test_faults_are_listed_with_the_generator_and_severity(plant: Plant) -> None:
    bare = plant.generator("A")
    full = plant.generator("B", annual_run_hour_limit=0)
    plant.ran(full, date(2025, 2, 1), 1)
    plant.tested(full, date(2025, 2, 1), -2)
    result = plant.report(reporting_period_end="2025-12-30")
    assert [(one["field"], one["severity"], one.get("generator_id")) for one in result["validation_errors"]] == [
        ("run_hours", "ERROR", bare),
        ("stack_tests", "ERROR", bare),
        ("emissions", "ERROR", full),
        ("run_hours", "WARNING", full),
        ("reporting_period", "ERROR", None),
    ]
    assert result["is_validated"] is False


def test_only_warnings_leave_a_report_valid(plant: Plant) -> None:
    generator = plant.generator(annual_run_hour_limit=10)
    plant.ran(generator, date(2025, 2, 1), "10.01")
    plant.tested(generator, date(2025, 2, 1), 1)
    result = plant.report()
    assert (result["is_validated"], len(result["validation_errors"])) == (True, 1)


def test_inactive_deleted_and_foreign_generators_are_left_out(plant: Plant, db: psycopg.Connection) -> None:
    other = Workforce.make(db, name="Other")
    plant.ran(plant.generator(is_active=False), date(2025, 2, 1), 1)
    plant.ran(plant.generator(deleted_at="2025-01-01T00:00Z"), date(2025, 2, 1), 1)
    plant.ran(plant.generator(company_id=other.company_id), date(2025, 2, 1), 1)
    result = plant.report()
    assert (result["total_run_hours"], [one["field"] for one in result["validation_errors"]]) == (0, ["run_hours"])


def test_progress_names_generators(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(JobContext, "report", lambda _, percent, message: told.append(message))
    plant.generator()
    plant.generator("G2")
    plant.report()
    assert told == ["Processing generator 1/2", "Processing generator 2/2"]


def test_who_asked_is_told_within_the_application(plant: Plant, people: Workforce, db: psycopg.Connection) -> None:
    people.hire("ADMIN")
    aer_id = plant.report()["aer_id"]
    [told] = rows(db, "notifications", "user_id", "alert_type", "severity", "channel", "message", "dedupe_key")
    assert (str(told[0]), *told[1:4]) == (people.owner_id, "SYSTEM", "INFO", "IN_APP")
    assert told[4] == "AER generated successfully for period 2025-01-01 - 2025-12-31"
    assert told[5] == f"AER_GENERATION:{aer_id}:{aer_id}:{people.owner_id}:IN_APP"


def test_owners_are_told_of_a_report_by_cron(plant: Plant, people: Workforce, db: psycopg.Connection) -> None:
    second = people.hire("OWNER")
    people.hire("ADMIN")
    plant.report(requested_by=None)
    assert {str(one) for (one,) in rows(db, "notifications", "user_id")} == {people.owner_id, second}
    assert rows(db, "aer_documents", "created_by") == [(None,)]


def test_report_without_owners_is_written_all_the_same(plant: Plant, db: psycopg.Connection) -> None:
    db.execute("DELETE FROM compliance.user_roles")
    plant.report(requested_by=None)
    assert (len(rows(db, "aer_documents", "id")), rows(db, "notifications", "id")) == (1, [])


@pytest.mark.parametrize(
    "whose", ["foreign document", "deleted document", "deleted site", "foreign requester", "deleted requester"]
)
def test_what_is_absent_fails_at_once(plant: Plant, people: Workforce, db: psycopg.Connection, whose: str) -> None:
    other = Workforce.make(db, name="Other")
    closed = add(db, "sites", company_id=people.company_id, deleted_at="2026-01-01T00:00Z")
    fields = {
        "foreign document": {"document_id": other.document()},
        "deleted site": {"document_id": people.document(site_id=closed)},
        "deleted document": {"document_id": people.document(deleted_at="2026-01-01T00:00Z")},
        "foreign requester": {"requested_by": other.owner_id},
        "deleted requester": {"requested_by": people.hire("ADMIN", deleted_at="2026-01-01T00:00Z")},
    }[whose]
    job = plant.stage.step(plant.submit(**fields))
    assert (job["status"], job["error_details"]["type"]) == ("failed", "Permanent")
    assert (rows(db, "aer_documents", "id"), plant.keys()) == ([], [])


def test_hours_that_are_no_number_fail_at_once(plant: Plant) -> None:
    generator = plant.generator(annual_run_hour_limit=5)
    plant.ran(generator, date(2025, 2, 1), Decimal("NaN"))
    assert plant.stage.step(plant.submit())["status"] == "failed"


def test_pdf_is_tried_once_more_and_then_fails(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def fail(*_: object, **__: object) -> bytes:
        tries.append(1)
        raise IndexError

    monkeypatch.setattr(pdf, "report", fail)
    job = plant.stage.step(plant.submit())
    assert (job["status"], len(tries)) == ("failed", 2)
    assert job["error_details"]["message"] == "the PDF can't be written: IndexError"


def test_repeat_after_a_failed_upload_writes_the_same_bytes(
    plant: Plant, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_csv = aer_report.write_csv

    def fail_once(report: Any) -> bytes:
        monkeypatch.setattr(aer_report, "write_csv", write_csv)
        raise ConnectionError

    monkeypatch.setattr(aer_report, "write_csv", fail_once)
    job_id = plant.submit()
    assert plant.stage.step(job_id)["status"] == "pending"
    [key] = plant.keys()
    first = plant.file(key)
    assert (plant.stage.step(job_id)["status"], plant.file(key)) == ("completed", first)
    assert (len(rows(db, "aer_documents", "id")), len(rows(db, "notifications", "id"))) == (1, 1)


def test_repeat_of_a_stored_report_finds_its_row(plant: Plant, db: psycopg.Connection) -> None:
    job_id = plant.submit()
    add(db, "aer_documents", id=job_id, company_id=plant.people.company_id, is_validated=True, total_run_hours=7)
    db.execute("UPDATE compliance.aer_documents SET validation_errors = '[]'")
    job = plant.stage.step(job_id)
    assert (job["result"]["total_run_hours"], plant.keys()) == (7, [])
