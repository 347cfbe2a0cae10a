"""A pack of evidence counts its obligations, checks its files, and says which of them are not what they were."""

from __future__ import annotations

import hashlib
from datetime import date, timedelta
from io import BytesIO
from typing import Any
from uuid import uuid4
from zipfile import ZipFile

import psycopg
import pytest

from compliance.reports import audit_pack_generation, pdf
from signalbox import JobContext
from signalbox.documents import report as reports
from signalbox.documents.pdf_text import read_pages
from signalbox.testing.stage import Stage
from tests.support.aws import shared_client
from tests.support.compliance_rows import Workforce, add, rows

BOARD = "BOARD_MULTI_SITE_RISK"
START, END = date(2026, 1, 1), date(2026, 3, 31)
COUNTS = (
    "total_obligations",
    "complete_count",
    "pending_count",
    "overdue_count",
    "evidence_count",
    "integrity_errors_count",
)
DONE = {"status": "COMPLETED", "completed_at": "2026-01-01T00:00Z"}


class Archive:
    """Hold a site's evidence, and ask for packs of it."""

    def __init__(self, people: Workforce, stage: Stage, bucket: str, moto: str) -> None:
        self.people, self.stage, self.bucket, self.db = people, stage, bucket, people.db
        self.s3 = shared_client("s3", moto)
        self.document_id = people.document(title="Site permit")

    def obligation(self, *deadlines: tuple[date, dict[str, Any]], **fields: Any) -> str:
        id_ = self.people.obligation(**{"document_id": self.document_id} | fields)
        for day, more in deadlines:
            self.people.deadline(id_, day, **more)
        return id_

    def evidence(self, *obligations: str, content: bytes | None = b"scan", name: str = "a.pdf", **fields: Any) -> str:
        """Add a file as its row says it is, and perhaps otherwise."""
        key = f"evidence/{uuid4()}"
        known = {
            "file_name": name,
            "file_type": "PDF",
            "mime_type": "application/pdf",
            "file_size_bytes": len(content or b""),
            "storage_path": key,
        }
        if content is not None:
            known["file_hash"] = hashlib.sha256(content).hexdigest()
            self.s3.put_object(Bucket=self.bucket, Key=key, Body=content, ContentType="application/pdf")
        id_ = add(self.db, "evidence_items", **self.people.ids | known | fields)
        for obligation_id in obligations:
            add(self.db, "obligation_evidence_links", obligation_id=obligation_id, evidence_id=id_)
        return id_

    def submit(self, pack_type: str = "AUDIT_PACK", **fields: Any) -> str:
        asked: dict[str, Any] = {"pack_type": pack_type, "requested_by": self.people.owner_id}
        asked |= self.people.ids if pack_type != BOARD else {"company_id": self.people.company_id}
        asked |= {"date_range_start": START.isoformat(), "date_range_end": END.isoformat()} | fields
        return self.stage.submit("audit_pack_generation", payload=asked)

    def pack(self, pack_type: str = "AUDIT_PACK", **fields: Any) -> dict[str, Any]:
        job = self.stage.finish(self.submit(pack_type, **fields))
        assert job["status"] == "completed", job["error_details"]
        result: dict[str, Any] = job["result"]
        return result

    def file(self, key: str) -> bytes:
        data: bytes = self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        return data

    def names(self, key: str) -> set[str]:
        return set(ZipFile(BytesIO(self.file(key))).namelist())

    def text(self, key: str) -> str:
        return "\n".join(read_pages(self.file(key), most_pages=50))


@pytest.fixture
def archive(people: Workforce, stage: Stage, bucket: str, moto: str) -> Archive:
    return Archive(people, stage, bucket, moto)


def test_pack_counts_each_obligation_and_each_file_once(archive: Archive, db: psycopg.Connection) -> None:
    first = archive.obligation((START, DONE), (END, DONE))
    second = archive.obligation((START, {"status": "OVERDUE"}), (END, DONE))
    archive.obligation((END + timedelta(days=1), {"status": "OVERDUE"}))
    archive.obligation((START - timedelta(days=1), {}))
    archive.obligation((date(2026, 2, 1), DONE), deleted_at="2026-01-01T00:00Z")
    archive.obligation((START, DONE), document_id=archive.people.document(deleted_at="2026-01-01T00:00Z"))
    archive.evidence(first, second, first)
    archive.evidence(first, deleted_at="2026-01-01T00:00Z")
    archive.evidence(first, company_id=Workforce.make(db, name="Other").company_id)
    unlinked = archive.evidence()
    add(db, "obligation_evidence_links", obligation_id=first, evidence_id=unlinked, unlinked_at="2026-01-01T00:00Z")
    result = archive.pack()
    assert [result[name] for name in COUNTS] == [2, 1, 0, 1, 1, 0]
    generated = f"Generated: {archive.stage.job(result['pack_id'])['created_at']:%Y-%m-%d}"
    assert all(generated in page for page in read_pages(archive.file(result["storage_path"]), most_pages=50))
    [found] = rows(db, "audit_packs", "id", "storage_path", "file_size_bytes", "output_format", *COUNTS)
    assert (str(found[0]), *found[3:]) == (result["pack_id"], "PDF", 2, 1, 0, 1, 1, 0)
    assert found[1:3] == (result["storage_path"], len(archive.file(found[1])))
    [logged] = rows(db, "audit_logs", "action_type", "entity_type", "entity_id", "user_id")
    assert tuple(map(str, logged)) == (
        "AUDIT_PACK_GENERATED",
        "AUDIT_PACK",
        result["pack_id"],
        archive.people.owner_id,
    )


@pytest.mark.parametrize(
    ("company", "site", "standing"),
    [("UTC", None, "pending_count"), ("UTC", "Asia/Tokyo", "overdue_count"), ("Asia/Tokyo", None, "overdue_count")],
)
def test_day_of_the_pack_is_that_of_its_site(
    archive: Archive, db: psycopg.Connection, company: str, site: str | None, standing: str
) -> None:
    db.execute("UPDATE compliance.companies SET timezone = %s", (company,))
    db.execute("UPDATE compliance.sites SET timezone = %s", (site,))
    archive.obligation((date(2026, 3, 1), {"status": "DUE_SOON"}))
    job_id = archive.submit()
    db.execute("UPDATE signalbox.jobs SET created_at = '2026-03-01T23:30:00Z'")
    result = archive.stage.step(job_id)["result"]
    assert (result[standing], result["storage_path"][-20:]) == (1, "20260301T233000Z.pdf")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({}, None),
        ({"content": None}, "MISSING"),
        ({"storage_path": ""}, "MISSING"),
        ({"storage_path": "ä" * 600}, "MISSING"),
        ({"file_size_bytes": 5}, "METADATA_MISMATCH"),
        ({"mime_type": "image/png", "file_hash": "0" * 64}, "METADATA_MISMATCH"),
        ({"file_hash": "0" * 64}, "HASH_MISMATCH"),
        ({"file_hash": None}, None),
        ({"file_hash": hashlib.sha256(b"scan").hexdigest().upper()}, None),
    ],
)
@pytest.mark.parametrize("output_format", ["PDF", "ZIP"])
def test_first_fault_of_a_file_is_reported(
    archive: Archive, db: psycopg.Connection, change: dict[str, Any], fault: str | None, output_format: str
) -> None:
    id_ = archive.evidence(archive.obligation(), **change)
    result = archive.pack(output_format=output_format)
    [(found,)] = rows(db, "audit_packs", "integrity_report")
    errors = [{"evidence_id": id_, "file_name": "a.pdf", "error_type": fault}] if fault else []
    count = len(errors)
    assert found == {"total_checked": 1, "valid_count": 1 - count, "error_count": count, "errors": errors}
    assert result["integrity_errors_count"] == count
    if output_format == "PDF":
        assert ("Integrity Warnings" in archive.text(result["storage_path"])) == bool(errors)


@pytest.mark.parametrize(
    ("pack_type", "holds"),
    [
        ("AUDIT_PACK", {"old", "new"}),
        ("REGULATOR_INSPECTION", {"old", "new"}),
        ("TENDER_CLIENT_ASSURANCE", {"new"}),
        (BOARD, set()),
        ("INSURER_BROKER", set()),
    ],
)
def test_archive_holds_the_files_that_its_kind_shows(archive: Archive, pack_type: str, holds: set[str]) -> None:
    obligation = archive.obligation()
    ids = {
        "old": archive.evidence(obligation, name="old.pdf", upload_date="2026-01-01T00:00Z"),
        "new": archive.evidence(obligation, name="new.pdf", upload_date="2026-01-02T00:00Z"),
    }
    result = archive.pack(pack_type, output_format="ZIP")
    expected = {f"evidence/{ids[name]}-{name}.pdf" for name in holds}
    assert archive.names(result["storage_path"]) == expected | {"audit-pack.pdf"}
    assert (result["storage_path"][-4:], result["evidence_count"]) == (".zip", 2)


def test_archive_holds_files_as_they_are_and_names_that_stay_inside(archive: Archive) -> None:
    id_ = archive.evidence(archive.obligation(), content=b"as it is", name="../../x\n.pdf")
    archive.evidence(archive.obligation(), content=None, name="gone.pdf")
    with ZipFile(BytesIO(archive.file(archive.pack(output_format="ZIP")["storage_path"]))) as found:
        assert found.testzip() is None
        assert found.read(f"evidence/{id_}-.._.._x_.pdf") == b"as it is"
        assert len(found.namelist()) == 2


def test_archive_without_evidence_files_holds_the_report_alone(archive: Archive) -> None:
    archive.evidence(archive.obligation())
    result = archive.pack(output_format="ZIP", include_evidence_files=False)
    assert archive.names(result["storage_path"]) == {"audit-pack.pdf"}


@pytest.mark.parametrize(
    ("pack_type", "sections"),
    [
        ("AUDIT_PACK", ["Compliance Matrix", "Obligation Details", "Evidence Appendix"]),
        ("REGULATOR_INSPECTION", ["Permit Summary", "Obligation Matrix", "Gap Analysis"]),
        ("TENDER_CLIENT_ASSURANCE", ["Evidence Samples", "Risk Assessment", "Action Plan"]),
        (BOARD, ["Site-by-Site Compliance Matrix", "Trend Analysis", "Action Items"]),
        ("INSURER_BROKER", ["Risk Narrative", "Evidence Overview", "Compliance Certification"]),
    ],
)
def test_each_kind_has_its_sections_even_without_obligations(
    archive: Archive, pack_type: str, sections: list[str]
) -> None:
    empty = archive.text(archive.pack(pack_type)["storage_path"])
    archive.evidence(archive.obligation((START, {"status": "OVERDUE"}), original_text="Long <text> & more"))
    full = archive.text(archive.pack(pack_type, document_id=archive.document_id)["storage_path"])
    assert [section for section in sections if section not in empty or section not in full] == []


def test_board_pack_covers_all_live_sites_of_the_company(archive: Archive, db: psycopg.Connection) -> None:
    south = add(db, "sites", company_id=archive.people.company_id, name="South works")
    closed = add(db, "sites", company_id=archive.people.company_id, deleted_at="2026-01-01T00:00Z")
    archive.obligation()
    add(db, "obligations", company_id=archive.people.company_id, site_id=south)
    add(db, "obligations", company_id=archive.people.company_id, site_id=closed)
    Workforce.make(db, name="Other").obligation()
    result = archive.pack(BOARD)
    assert result["total_obligations"] == 2
    assert result["storage_path"].startswith(f"audit-packs/{archive.people.company_id}/board/{result['pack_id']}/")
    assert "South works" in archive.text(result["storage_path"])


def test_document_and_filters_narrow_the_obligations(archive: Archive) -> None:
    archive.obligation(category="WATER", status="IN_PROGRESS")
    archive.obligation(category="AIR", status="OVERDUE")
    archive.obligation(document_id=archive.people.document())
    filters: list[dict[str, Any]] = [
        {"categories": ["WATER"]},
        {"obligation_statuses": ["OVERDUE", "IN_PROGRESS"]},
        {"include_overdue_only": True},
    ]
    found = [archive.pack(filters_applied=one)["total_obligations"] for one in filters]
    whole = [archive.pack(**given)["total_obligations"] for given in ({}, {"document_id": archive.document_id})]
    assert (found, whole) == ([1, 2, 1], [3, 2])


def test_progress_names_obligations_and_files(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(JobContext, "report", lambda _, percent, message: told.append(message))
    archive.evidence(archive.obligation(), archive.obligation())
    archive.pack()
    assert told == [f"Processing obligation {number}/2, evidence 1/1" for number in (1, 2)]


def test_requester_is_told_where_the_pack_is(archive: Archive, db: psycopg.Connection) -> None:
    pack_id = archive.pack(document_id=archive.document_id)["pack_id"]
    [told] = rows(db, "notifications", "user_id", "severity", "channel", "message", "action_url", "entity_type")
    assert (str(told[0]), *told[1:]) == (
        archive.people.owner_id,
        "INFO",
        "IN_APP",
        "Your audit pack for Site permit (2026-01-01 - 2026-03-31) is ready.",
        f"/audit-packs/{pack_id}/download",
        "AUDIT_PACK",
    )


@pytest.mark.parametrize(
    "asked",
    [
        "no site",
        "board with a site",
        "board for staff",
        "foreign site",
        "deleted site",
        "foreign document",
        "foreign requester",
        "dates in the wrong order",
    ],
)
def test_pack_that_may_not_be_made_fails_at_once(archive: Archive, db: psycopg.Connection, asked: str) -> None:
    other = Workforce.make(db, name="Other")
    closed = add(db, "sites", company_id=archive.people.company_id, deleted_at="2026-01-01T00:00Z")
    cases: dict[str, dict[str, Any]] = {
        "no site": {"site_id": None},
        "board with a site": {"pack_type": BOARD, "site_id": archive.people.site_id},
        "board for staff": {"pack_type": BOARD, "requested_by": archive.people.hire("STAFF")},
        "foreign site": {"site_id": other.site_id},
        "deleted site": {"site_id": closed},
        "foreign document": {"document_id": other.document()},
        "foreign requester": {"requested_by": other.owner_id},
        "dates in the wrong order": {"date_range_end": "2025-12-31"},
    }
    job = archive.stage.step(archive.submit(**cases[asked]))
    assert (job["status"], job["error_details"]["type"]) == ("failed", "Permanent")
    assert rows(db, "audit_packs", "id") == []


def test_pdf_is_tried_once_more(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def fail_once(*given: Any, **options: Any) -> bytes:
        tries.append(1)
        if len(tries) == 1:
            raise IndexError
        return reports.report(*given, **options)

    monkeypatch.setattr(pdf, "report", fail_once)
    assert (archive.pack()["total_obligations"], len(tries)) == (0, 2)


@pytest.mark.parametrize("output_format", ["PDF", "ZIP"])
def test_repeat_between_upload_and_row_gives_the_same_bytes(
    archive: Archive, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, output_format: str
) -> None:
    archive.evidence(archive.obligation((START, {})))
    store = audit_pack_generation._store

    def fail_once(*_: object) -> None:
        monkeypatch.setattr(audit_pack_generation, "_store", store)
        raise ConnectionError

    monkeypatch.setattr(audit_pack_generation, "_store", fail_once)
    job_id = archive.submit(output_format=output_format)
    assert archive.stage.step(job_id)["status"] == "pending"
    [key] = [one["Key"] for one in archive.s3.list_objects_v2(Bucket=archive.bucket, Prefix="audit")["Contents"]]
    first = archive.file(key)
    job = archive.stage.step(job_id)
    assert (job["status"], job["result"]["storage_path"], archive.file(key)) == ("completed", key, first)
    assert [len(rows(db, table, "id")) for table in ("audit_packs", "audit_logs", "notifications")] == [1, 1, 1]


def test_repeat_of_a_stored_pack_finds_its_row(archive: Archive, db: psycopg.Connection) -> None:
    job_id = archive.submit()
    add(db, "audit_packs", id=job_id, company_id=archive.people.company_id, storage_path="p", complete_count=7)
    result = archive.stage.step(job_id)["result"]
    assert (result["pack_id"], result["storage_path"], result["complete_count"]) == (job_id, "p", 7)
    assert rows(db, "audit_logs", "id") == []
