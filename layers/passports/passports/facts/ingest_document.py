"""Read an uploaded file: JSON as it is, a PDF by its text, a scan by Textract.

the file → its text → `label: value` lines → canonical JSON → a new version of the document → parse_facts
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal
from uuid import UUID

from passports.chain.events import append_event
from passports.encoding.canonical import canonical
from passports.facts.documents import KINDS, elements_of_lines
from signalbox import Completed, JobContext, JobPayload, NewJob, Permanent, Snooze
from signalbox.aws.bucket import Bucket
from signalbox.documents import ocr
from signalbox.documents.pdf_text import read_pages
from signalbox.packs.refusals import refuse
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
MOST_BYTES = 20 * 1024 * 1024
MOST_PAGES = 3000
LEAST_CHARACTERS = 20  # of a page that is no scan
MIME_TYPES = ("application/json", "application/pdf", "image/png", "image/jpeg")
_LOOK_AGAIN = timedelta(seconds=10)
Method = Literal["json", "pdf_text", "textract"]


class IngestDocument(JobPayload):
    """Say which document, and which file of the jobs' bucket."""

    document_id: UUID
    file_url: str
    mime_type: str


@dataclass(frozen=True, slots=True)
class Uploaded:
    """Hold what is known of the document, and where its file is."""

    document_id: str
    tenant: str
    kind: str
    bucket: str
    key: str


def ingest_document(context: JobContext) -> Completed | Snooze:
    """Return the new version's id, how it was read, and the job that parses it."""
    payload: IngestDocument = context.payload
    found = _find(context, payload)
    if (known := context.db.execute(SQL["known"], {"job": context.key, "tenant": found.tenant}).fetchone()) is not None:
        return _completed(context, found, *known)
    if payload.mime_type == "application/json":
        return _store(context, found, "json", _read(context, found), recognized=found.kind in KINDS)
    if context.cursor is None:
        pages = _text_of(context, found)
        if pages is None:
            job_id = ocr.start(context.clients.textract, found.bucket, found.key, token=context.key)
            return Snooze(_LOOK_AGAIN, "Textract reads the file", {"textract": job_id})
        return _store_text(context, found, "pdf_text", pages)
    scanned = ocr.look(context.clients.textract, context.cursor["textract"])
    if scanned is None:
        return Snooze(_LOOK_AGAIN, "Textract reads the file")
    return _store_text(context, found, "textract", scanned.texts)


def _find(context: JobContext, payload: IngestDocument) -> Uploaded:
    values = {"id": payload.document_id, "tenant": context.job.tenant}
    row = context.db.execute(SQL["find"], values).fetchone()
    if row is None:
        raise refuse("NOT_FOUND", f"document {payload.document_id} does not exist")
    tenant, kind = row
    bucket = context.resources.settings.jobs_bucket
    if bucket is None:
        raise Permanent("files can't be read: this stack has no SIGNALBOX_JOBS_BUCKET")
    prefix = f"s3://{bucket}/documents/{tenant}/"
    if not payload.file_url.startswith(prefix) or payload.file_url == prefix:
        raise refuse("FILE_REFUSED", f"the file is not below documents/{tenant}/ of the stack's own bucket")
    if payload.mime_type not in MIME_TYPES:
        raise refuse(
            "FILE_REFUSED", f"files of type {payload.mime_type[:100]} are not read: {', '.join(MIME_TYPES)} are"
        )
    key = payload.file_url.removeprefix(f"s3://{bucket}/")
    found = Uploaded(str(payload.document_id), tenant, kind, bucket, key)
    _check_size(context, found)
    return found


def _check_size(context: JobContext, found: Uploaded) -> None:
    facts = Bucket(context.clients.s3, found.bucket).facts(found.key)
    if facts is None:
        raise _absent(found)
    if facts.bytes > MOST_BYTES:
        raise refuse("FILE_REFUSED", f"the file has {facts.bytes} bytes, and at most {MOST_BYTES} are read")


def _read(context: JobContext, found: Uploaded) -> bytes:
    data = Bucket(context.clients.s3, found.bucket).read(found.key)
    if data is None:
        raise _absent(found)
    return data


def _absent(found: Uploaded) -> Permanent:
    return refuse("NOT_FOUND", f"the file {found.key} does not exist")


def _text_of(context: JobContext, found: Uploaded) -> list[str] | None:
    """Return the text of a PDF's pages, or None where any of them is a scan."""
    if context.payload.mime_type != "application/pdf":
        return None
    pages = read_pages(_read(context, found), MOST_PAGES)
    return pages if all(len(page) >= LEAST_CHARACTERS for page in pages) else None


def _store_text(context: JobContext, found: Uploaded, method: Method, pages: Sequence[str]) -> Completed:
    elements = elements_of_lines(found.kind, (line for page in pages for line in page.splitlines()))
    content: dict[str, Any] = {KINDS[found.kind].array: elements} if elements else {"text": list(pages)}
    return _store(context, found, method, canonical(content), recognized=bool(elements))


def _store(context: JobContext, found: Uploaded, method: Method, content: bytes, *, recognized: bool) -> Completed:
    values = {
        "document": found.document_id,
        "tenant": found.tenant,
        "content": content,
        "url": context.payload.file_url,
        "job": context.key,
    }
    with context.db.transaction():
        context.db.execute(SQL["lock"], values)
        row = context.db.execute(SQL["add_version"], values).fetchone()
        if row is not None:  # else another worker has stored it
            append_event(context.db, found.tenant, "DocumentVersion", row[0], "DOCUMENT_INGESTED", {"method": method})
            if recognized:
                _parse(context, found, row[0])
    [known] = context.db.execute(SQL["known"], values).fetchall()
    return _completed(context, found, *known)


def _completed(context: JobContext, found: Uploaded, version_id: str, method: Method, content: bytes) -> Completed:
    """Return the result, which is the same each time."""
    recognized = found.kind in KINDS and (
        method == "json" or content.startswith(b'{"' + KINDS[found.kind].array.encode())
    )
    parse_job_id = _parse(context, found, version_id) if recognized else None
    done = {"document_version_id": version_id, "method": method, "recognized": recognized}
    return Completed({"document_id": found.document_id, **done, "parse_job_id": parse_job_id})


def _parse(context: JobContext, found: Uploaded, version_id: str) -> str:
    key = f"parse-{version_id}"
    payload = {"document_version_id": version_id}
    return context.submit([NewJob("parse_facts", payload, tenant=found.tenant, idempotency_key=key)])[0].id
