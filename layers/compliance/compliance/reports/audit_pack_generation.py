"""Write a pack of evidence, and check that its files are what they were.

read the obligations → check the files, and copy them → write the report → upload → store the pack and tell who asked

A file that is missing or has changed does not fail the pack: its report warns of it. The pack's id is the job's, so a
repeat finds its row, and the same content gives the same bytes.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, date
from tempfile import TemporaryFile
from typing import Any, Literal
from uuid import UUID
from zipfile import ZipFile

from psycopg.rows import dict_row
from psycopg.types.json import Jsonb
from pydantic import BaseModel, ConfigDict

from compliance.company.files import files_of
from compliance.company.notify import Notification, notify
from compliance.company.people import MANAGERS, People, Person
from compliance.reports.evidence import Fault, add_report, check_file, write_file
from compliance.reports.pack import Pack, newest_files
from compliance.reports.pack_content import parts_of, title_of
from compliance.reports.pack_obligations import Deadline, Evidence, Obligation, Standing
from compliance.reports.pdf import write_pdf
from signalbox import Completed, JobContext, JobPayload, Permanent
from signalbox.aws.bucket import Bucket
from signalbox.packs.outcome import OutputFile
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
PackType = Literal[
    "AUDIT_PACK", "REGULATOR_INSPECTION", "TENDER_CLIENT_ASSURANCE", "BOARD_MULTI_SITE_RISK", "INSURER_BROKER"
]
_BOARD, _TENDER = "BOARD_MULTI_SITE_RISK", "TENDER_CLIENT_ASSURANCE"
_WITH_ALL_FILES = ("AUDIT_PACK", "REGULATOR_INSPECTION")
_TYPES = {"PDF": "application/pdf", "ZIP": "application/zip"}


class PackFilters(BaseModel):
    """Say which obligations to take."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    obligation_statuses: list[str] | None = None
    categories: list[str] | None = None
    include_overdue_only: bool = False


class AuditPackGeneration(JobPayload):
    """Say which kind of pack, about what, and who gets it."""

    pack_type: PackType
    company_id: UUID
    document_id: UUID | None = None
    site_id: UUID | None = None
    date_range_start: date
    date_range_end: date
    filters_applied: PackFilters | None = None
    include_evidence_files: bool = True
    output_format: Literal["PDF", "ZIP"] = "PDF"
    recipient_type: Literal["REGULATOR", "CLIENT", "BOARD", "INSURER", "INTERNAL"] | None = None
    recipient_name: str | None = None
    purpose: str | None = None
    requested_by: UUID


def audit_pack_generation(context: JobContext) -> Completed:
    """Return the pack's id, where it is, and its counts."""
    with context.db.cursor(row_factory=dict_row) as cursor:
        known = cursor.execute(SQL["known"], _values(context)).fetchone()
    if known is not None:
        return Completed({"pack_id": context.key, **known})
    began = time.monotonic()
    requester = _check(context)
    context.note(step="read")
    pack = _read(context, requester)
    context.note(step="write", obligations=len(pack.obligations), files=len(pack.files))
    pack, written = _write(context, pack)
    context.note(step="store", integrity_errors=len(pack.faults))
    with context.db.transaction():
        _store(context, pack, written, round(1000 * (time.monotonic() - began)))
        _tell(context, pack, requester)
    return Completed({"pack_id": context.key, "storage_path": written.key, **asdict(pack.counts)}, [written])


def _values(context: JobContext) -> dict[str, Any]:
    payload: AuditPackGeneration = context.payload
    filters = payload.filters_applied or PackFilters()
    return {
        "pack_id": context.key,
        "company_id": payload.company_id,
        "site_id": payload.site_id,
        "document_id": payload.document_id,
        "requested_by": payload.requested_by,
        "start": payload.date_range_start,
        "end": payload.date_range_end,
        "created_at": context.job.created_at,
        "statuses": filters.obligation_statuses,
        "categories": filters.categories,
    }


def _check(context: JobContext) -> Person:
    """Refuse a pack of the wrong shape, and who may not ask for it; return who asks."""
    payload: AuditPackGeneration = context.payload
    is_board = payload.pack_type == _BOARD
    if is_board and payload.site_id is not None:
        raise Permanent("Board Pack must have site_id = null")
    if not is_board and payload.site_id is None:
        raise Permanent(f"{payload.pack_type} requires site_id")
    if payload.date_range_start > payload.date_range_end:
        raise Permanent("date_range_start is after date_range_end")
    requester = People.of(context.db, str(payload.company_id)).one(payload.requested_by)
    if requester is None or (is_board and not requester.has_role(*MANAGERS)):
        needed = "is neither OWNER nor ADMIN of" if is_board else "has no role in"
        raise Permanent(f"user {payload.requested_by} {needed} company {payload.company_id}")
    return requester


def _read(context: JobContext, requester: Person) -> Pack:
    payload: AuditPackGeneration = context.payload
    found = context.db.execute(SQL["company"], _values(context)).fetchone()
    if found is None:
        raise Permanent(f"company {payload.company_id} does not exist")
    company, has_site, site = found
    if payload.site_id is not None and not has_site:
        raise Permanent(f"site {payload.site_id} does not exist in company {payload.company_id}")
    return Pack(
        pack_type=payload.pack_type,
        company=company or "-",
        site=(site or "-") if has_site else None,
        document=_read_document(context),
        start=payload.date_range_start,
        end=payload.date_range_end,
        generated_at=context.job.created_at.astimezone(UTC),
        generated_by=requester.email or requester.id,
        recipient=payload.recipient_name or payload.recipient_type,
        purpose=payload.purpose,
        obligations=_read_obligations(context),
        faults={},
    )


def _read_document(context: JobContext) -> Mapping[str, str | None] | None:
    if context.payload.document_id is None:
        return None
    with context.db.cursor(row_factory=dict_row) as cursor:
        found = cursor.execute(SQL["document"], _values(context)).fetchone()
    if found is None:
        raise Permanent("Document not found or access denied")
    return found


def _read_obligations(context: JobContext) -> list[Obligation]:
    with context.db.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(SQL["obligations"], _values(context)).fetchall()
    evidence: dict[str, list[Evidence]] = defaultdict(list)
    values = _values(context) | {"obligations": [row["id"] for row in rows]}
    for obligation_id, *file in context.db.execute(SQL["evidence"], values):
        evidence[obligation_id].append(Evidence(*file))
    obligations = []
    for row in rows:
        dates, statuses = row.pop("dates") or [], row.pop("statuses") or []
        deadlines = [Deadline(*pair) for pair in zip(dates, statuses, strict=True)]
        obligations.append(Obligation(**row, deadlines=deadlines, evidence=evidence[row["id"]]))
    filters = context.payload.filters_applied
    if filters is None or not filters.include_overdue_only:
        return obligations
    return [one for one in obligations if one.standing == Standing.OVERDUE]


def _write(context: JobContext, pack: Pack) -> tuple[Pack, OutputFile]:
    """Check the files and write the pack; return it with the faults that were found."""
    payload: AuditPackGeneration = context.payload
    files, kind = files_of(context), payload.output_format
    place = f"{payload.company_id}/{payload.site_id or 'board'}/{context.key}"
    key = f"audit-packs/{place}/audit-pack-{pack.generated_at:%Y%m%dT%H%M%SZ}.{kind.lower()}"
    with TemporaryFile() as file:
        if kind == "ZIP":
            with ZipFile(file, "w") as archive:
                pack = replace(pack, faults=_check_files(context, files, pack, archive))
                add_report(archive, _pdf(pack))
        else:
            pack = replace(pack, faults=_check_files(context, files, pack, None))
            file.write(_pdf(pack))
        sha256, size = write_file(files, key, file, _TYPES[kind])
    return pack, OutputFile(key, sha256, size, _TYPES[kind])


def _pdf(pack: Pack) -> bytes:
    return write_pdf(title_of(pack), parts_of(pack), f"Generated: {pack.generated_at:%Y-%m-%d}")


def _check_files(context: JobContext, files: Bucket, pack: Pack, archive: ZipFile | None) -> dict[str, Fault]:
    """Return the faults of files by their ids; copy the files that the pack holds into the archive."""
    copied = _copied(context.payload, pack)
    faults: dict[str, Fault] = {}
    left, total = dict(pack.files), len(pack.files)
    for number, obligation in enumerate(pack.obligations, 1):
        for file in filter(None, [left.pop(one.id, None) for one in obligation.evidence]):
            context.check_cancelled()
            fault = check_file(files, file, archive if file.id in copied else None)
            if fault is not None:
                faults[file.id] = fault
                facts = {"pack_id": context.key, "evidence_id": file.id, "fault": fault}
                context.log.warning("compliance.evidence_faulty", extra=facts)
        done = f"obligation {number}/{len(pack.obligations)}, evidence {total - len(left)}/{total}"
        context.report(90 * number // len(pack.obligations), f"Processing {done}")
    return faults


def _copied(payload: AuditPackGeneration, pack: Pack) -> Mapping[str, Evidence]:
    """Return the files that an archive of this kind holds, by their ids."""
    if not payload.include_evidence_files:
        return {}
    if payload.pack_type == _TENDER:
        return newest_files(pack.obligations)
    return pack.files if payload.pack_type in _WITH_ALL_FILES else {}


def _store(context: JobContext, pack: Pack, written: OutputFile, took_ms: int) -> None:
    payload: AuditPackGeneration = context.payload
    counts = asdict(pack.counts)
    metadata = {"pack_type": payload.pack_type, "output_format": payload.output_format, "storage_path": written.key}
    values = {
        "pack_type": payload.pack_type,
        "recipient_type": payload.recipient_type,
        "recipient_name": payload.recipient_name,
        "purpose": payload.purpose,
        "filters": Jsonb(payload.filters_applied.model_dump(exclude_unset=True)) if payload.filters_applied else None,
        "storage_path": written.key,
        "output_format": payload.output_format,
        "bytes": written.bytes,
        "integrity_report": Jsonb(_integrity_report(pack)),
        "took_ms": took_ms,
        "metadata": Jsonb(metadata | counts),
    }
    context.db.execute(SQL["store"], _values(context) | values | counts)


def _integrity_report(pack: Pack) -> dict[str, Any]:
    errors = [
        {"evidence_id": id_, "file_name": pack.files[id_].file_name, "error_type": fault}
        for id_, fault in pack.faults.items()
    ]
    total = len(pack.files)
    return {
        "total_checked": total,
        "valid_count": total - len(errors),
        "error_count": len(errors),
        "errors": errors,
    }


def _tell(context: JobContext, pack: Pack, requester: Person) -> None:
    payload: AuditPackGeneration = context.payload
    subject = (pack.document or {}).get("title") or pack.site or pack.company
    notification = Notification(
        to=requester,
        channel="IN_APP",
        job_type=context.job.job_type,
        entity_type="AUDIT_PACK",
        entity_id=context.key,
        parts=context.key,
        alert_type="SYSTEM",
        severity="INFO",
        title="Audit Pack Generated Successfully",
        message=f"Your audit pack for {subject} ({pack.start} - {pack.end}) is ready.",
        site_id=str(payload.site_id) if payload.site_id else None,
        action_url=f"/audit-packs/{context.key}/download",
    )
    notify(context, str(payload.company_id), [notification])
