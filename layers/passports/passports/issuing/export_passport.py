"""Write a passport as PDF, JSON-LD or XML, in the same bytes each time.

read the version → verify its signature → write the file → store its row with its event

A repeat writes the file again, since another export may have taken its key, and finds its row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple
from uuid import UUID

from passports.chain.events import append_event
from passports.encoding.canonical import read_own, sha256
from passports.issuing.exports import SignedPassport, write_json_ld, write_pdf, write_xml
from passports.issuing.signature import is_signed
from signalbox import Completed, JobContext, JobPayload, Permanent
from signalbox.aws.errors import s3_errors
from signalbox.packs.outcome import OutputFile
from signalbox.packs.refusals import refuse
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
_LONGEST_KEY = 1024  # bytes, as S3 has it


class ExportPassport(JobPayload):
    """Say which version of a passport, in which format, and perhaps under which key."""

    passport_version_id: UUID
    format: Literal["PDF", "JSON_LD", "XML"]
    destination: str | None = None


class Format(NamedTuple):
    """Say how a format is written."""

    write: Callable[[SignedPassport], bytes]
    suffix: str
    content_type: str


_FORMATS = {
    "PDF": Format(write_pdf, "pdf", "application/pdf"),
    "JSON_LD": Format(write_json_ld, "jsonld", "application/ld+json"),
    "XML": Format(write_xml, "xml", "application/xml"),
}


def export_passport(context: JobContext) -> Completed:
    """Return the file's key, its size and its SHA-256."""
    payload: ExportPassport = context.payload
    tenant_id, passport = _read(context)
    chosen = _FORMATS[payload.format]
    key = _key(payload, tenant_id, chosen.suffix)
    data = chosen.write(passport)
    file = OutputFile(key, sha256(data).hex(), len(data), chosen.content_type)
    _put(context, file, data)
    with context.db.transaction():
        _store(context, tenant_id, file)
    found = {"passport_version_id": str(passport.id), "key": key, "bytes": file.bytes, "sha256": file.sha256}
    return Completed(found, [file])


def _read(context: JobContext) -> tuple[UUID, SignedPassport]:
    """Return the version and its tenant, if the signature covers what will be exported."""
    id_ = context.payload.passport_version_id
    row = context.db.execute(SQL["find"], {"passport_version_id": id_, "tenant": context.job.tenant}).fetchone()
    if row is None:
        raise refuse("NOT_FOUND", f"passport version {id_} does not exist")
    tenant_id, status, payload_hash, receipt_hash, *rest = row
    if status not in ("SIGNED", "ACTIVE"):
        raise refuse("INVALID_PASSPORT_STATUS", f"passport version {id_} is {status}, neither SIGNED nor ACTIVE")
    passport = SignedPassport(id_, *rest)
    if not _is_covered(passport, payload_hash, receipt_hash):
        raise refuse("SIGNATURE_INVALID", f"the signature of version {id_} is not one of its receipt and payload")
    return tenant_id, passport


def _is_covered(passport: SignedPassport, payload_hash: bytes, receipt_hash: bytes) -> bool:
    """Say whether the signature is of the receipt, and the receipt of the payload."""
    try:
        return (
            sha256(passport.payload) == payload_hash
            and sha256(passport.receipt) == receipt_hash
            and is_signed(passport.public_key, passport.signature, receipt_hash)
            and bool(read_own(passport.receipt)["payload_hash"] == payload_hash.hex())
        )
    except (ValueError, TypeError, LookupError):  # there is no signature, or the receipt is none
        return False


def _key(payload: ExportPassport, tenant_id: UUID, suffix: str) -> str:
    """Return the file's key: the passport's own, or the destination if it is one of the tenant's."""
    key, folder = payload.destination, f"exports/{tenant_id}/"
    if key is None:
        return f"exports/passports/{payload.passport_version_id}.{suffix}"
    if not key.startswith(folder) or key == folder or ".." in key or not key.isprintable():
        raise refuse("FILE_REFUSED", f"the destination must be a key below {folder} without '..'")
    if len(key.encode()) > _LONGEST_KEY:
        raise refuse("FILE_REFUSED", f"the destination is longer than {_LONGEST_KEY} bytes")
    return key


def _put(context: JobContext, file: OutputFile, data: bytes) -> None:
    bucket = context.resources.settings.jobs_bucket
    if bucket is None:
        raise Permanent("the stack has no bucket for files of jobs (SIGNALBOX_JOBS_BUCKET)")
    with s3_errors(file.key):
        context.clients.s3.put_object(Bucket=bucket, Key=file.key, Body=data, ContentType=file.content_type)


def _store(context: JobContext, tenant_id: UUID, file: OutputFile) -> None:
    """Store the file's row, with an event if it is new."""
    payload: ExportPassport = context.payload
    values = {
        "tenant_id": tenant_id,
        "passport_version_id": payload.passport_version_id,
        "format": payload.format,
        "key": file.key,
        "bytes": file.bytes,
        "sha256": bytes.fromhex(file.sha256),
    }
    if context.db.execute(SQL["store"], values).rowcount == 0:
        context.db.execute(SQL["refresh"], values)
        return
    event = {"format": payload.format}
    append_event(context.db, tenant_id, "PassportVersion", payload.passport_version_id, "PASSPORT_EXPORTED", event)
