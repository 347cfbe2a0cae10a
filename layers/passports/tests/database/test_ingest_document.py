"""An uploaded file becomes a version of its document, read by its text or by Textract."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from passports.facts import ingest_document
from signalbox.documents.report import Paragraph, report
from signalbox.testing.stage import Stage
from signalbox_laptop.stand_ins.aws_services import AwsServices
from tests.support.aws import shared_client
from tests.support.passport_rows import Tenant, events_of
from tests.support.stand_ins import instruct

LINES = [
    "Bill of materials",
    "SKU: CELL-1",
    "Mass kg: 12.5",
    "mass  KG: 13",
    "SKU: CELL-2",
    "Note: 1e400",
    "Big: 9007199254740993",
]
ELEMENTS = [{"mass_kg": 12.5, "sku": "CELL-1"}, {"big": "9007199254740993", "note": "1e400", "sku": "CELL-2"}]


class Upload:
    """Put files where a tenant's are, and ingest them."""

    def __init__(self, stage: Stage, tenant: Tenant, bucket: str, moto: str) -> None:
        self.stage, self.tenant, self.bucket = stage, tenant, bucket
        self.s3 = shared_client("s3", moto)

    def submit(self, data: bytes | None, mime: str, kind: str = "BOM", key: str = "a", **fields: Any) -> str:
        document = self.tenant.add("documents", kind=kind)
        key = f"documents/{self.tenant.id}/{key}"
        if data is not None:
            self.s3.put_object(Bucket=self.bucket, Key=key, Body=data)
        payload = {"document_id": document, "file_url": f"s3://{self.bucket}/{key}", "mime_type": mime}
        return self.stage.submit("ingest_document", payload=payload | fields)

    def content(self, version: str) -> bytes:
        query = "SELECT content FROM passports.document_versions WHERE id = %s"
        [(found,)] = self.tenant.db.execute(query, (version,)).fetchall()
        return bytes(found)


@pytest.fixture
def upload(stage: Stage, tenant: Tenant, bucket: str, moto: str) -> Upload:
    return Upload(stage, tenant, bucket, moto)


def pdf(*pages: list[str]) -> bytes:
    return report("Document of some length", [Paragraph("\n".join(page)) for page in pages])


def test_json_is_stored_as_it_is_and_parsed(upload: Upload, db: psycopg.Connection) -> None:
    data = b'{ "components": [{"sku": "A"}] }'
    result = upload.stage.step(upload.submit(data, "application/json"))["result"]
    version = result["document_version_id"]
    assert (result["method"], result["recognized"], upload.content(version)) == ("json", True, data)
    assert upload.stage.step(result["parse_job_id"])["result"]["fact_count"] == 1
    assert [name for name, _ in events_of(db, version)] == ["DOCUMENT_INGESTED", "FACTS_PARSED"]


def test_text_of_a_pdf_is_read_by_its_labels(upload: Upload) -> None:
    result = upload.stage.step(upload.submit(pdf(LINES), "application/pdf"))["result"]
    assert (result["method"], result["recognized"]) == ("pdf_text", True)
    assert json.loads(upload.content(result["document_version_id"])) == {"components": ELEMENTS}


@pytest.mark.parametrize("kind", ["OTHER", "DUE_DILIGENCE"])
def test_text_without_elements_is_kept_as_pages(upload: Upload, kind: str) -> None:
    result = upload.stage.step(upload.submit(pdf(LINES), "application/pdf", kind))["result"]
    assert (result["recognized"], result["parse_job_id"]) == (False, None)
    [page] = json.loads(upload.content(result["document_version_id"]))["text"]
    assert "SKU: CELL-1" in page


@pytest.mark.parametrize("mime_type", ["image/png", "image/jpeg", "application/pdf"])
def test_a_scan_is_read_by_textract(upload: Upload, services: AwsServices, mime_type: str) -> None:
    key = f"documents/{upload.tenant.id}/a"
    instruct(services.addresses["textract"], "texts", {key: [LINES[:3], LINES[3:]]})
    scan = report("x", []) if mime_type == "application/pdf" else b"picture"
    job_id = upload.submit(scan, mime_type)
    assert upload.stage.step(job_id)["status"] == "pending"
    result = upload.stage.step(job_id)["result"]
    assert (result["method"], result["recognized"]) == ("textract", True)
    assert json.loads(upload.content(result["document_version_id"])) == {"components": ELEMENTS}


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"mime_type": "text/html"}, "FileRefused"),
        ({"file_url": "https://x.example/a"}, "FileRefused"),
        ({"file_url": "s3://other/documents/a"}, "FileRefused"),
        ({"document_id": "00000000-0000-4000-8000-000000000000"}, "NotFound"),
    ],
)
def test_other_files_are_refused(upload: Upload, fields: dict[str, str], error: str) -> None:
    job_id = upload.submit(b"{}", "application/json", **fields)
    upload.stage.step(job_id)
    assert upload.stage.dead_letter(job_id)["error_type"] == error


def test_a_file_that_is_too_large_or_missing_is_refused(upload: Upload) -> None:
    found = []
    for data in (b" " * (ingest_document.MOST_BYTES + 1), None):
        job_id = upload.submit(data, "application/json", key=f"file-{data is None}")
        upload.stage.step(job_id)
        found.append(upload.stage.dead_letter(job_id)["error_type"])
    assert found == ["FileRefused", "NotFound"]


def test_a_repeat_answers_the_same_and_stores_nothing(
    upload: Upload, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = upload.submit(b'{"components":[]}', "application/json")
    completed = ingest_document._completed

    def die(*_: object) -> None:
        monkeypatch.setattr(ingest_document, "_completed", completed)
        raise ConnectionError

    monkeypatch.setattr(ingest_document, "_completed", die)
    assert upload.stage.step(job_id)["status"] == "pending"
    result = upload.stage.step(job_id)["result"]
    assert result["recognized"]
    assert db.execute("SELECT count(*) FROM passports.document_versions").fetchone() == (1,)
    assert db.execute("SELECT count(*) FROM signalbox.jobs WHERE job_type = 'parse_facts'").fetchone() == (1,)
