"""Read and write the rows of documents. What an extraction finds is written in one transaction, once for its job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg.types.json import Jsonb

from compliance.company.notify import Notification, notify
from compliance.company.people import People
from signalbox import JobContext, Permanent
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
_LEAST_OCR_CONFIDENCE = 0.8


@dataclass(frozen=True, slots=True)
class Document:
    """Hold what an extraction needs to know of a document."""

    id: str
    company_id: str
    site_id: str
    title: str | None
    document_type: str | None
    module_code: str | None
    extraction_status: str
    needs_ocr: bool
    is_large: bool
    uploaded_by: str | None
    is_of_deleted_company: bool

    @property
    def ids(self) -> dict[str, str]:
        return {"document_id": self.id, "company_id": self.company_id, "site_id": self.site_id}

    @property
    def folder(self) -> str:
        return f"documents/{self.company_id}/{self.site_id}/{self.id}"


@dataclass(frozen=True, slots=True)
class Reading:
    """Say how the document was read."""

    ocr_required: bool
    ocr_confidence: float | None = None
    is_partial: bool = False  # Textract has left pages out


@dataclass(frozen=True, slots=True)
class Findings:
    """Hold all that an extraction has found, for the transaction that ends it."""

    reading: Reading
    matched: Sequence[Mapping[str, Any]]  # obligations by rules
    extracted: Sequence[Mapping[str, Any]]  # obligations by the model
    faults: Sequence[Mapping[str, Any]]  # of the model's answers
    chunks: Sequence[str]  # SHA-256 of each
    kept: Sequence[str]  # SHA-256 of those that were not asked about
    log: Mapping[str, Any]  # segments, version, warnings, model_id


def begin(context: JobContext) -> Document | dict[str, Any]:
    """Return the document, which is being read from now on, or the result where there is nothing left to do."""
    with context.db.transaction():
        document = _lock(context)
        if (result := _earlier_result(context, document)) is not None:
            return result
        context.db.execute(SQL["begin"], document.ids)
    return document


def _lock(context: JobContext) -> Document:
    document_id = str(context.payload.document_id)
    row = context.db.execute(SQL["find"], {"document_id": document_id}).fetchone()
    if row is None:
        raise Permanent(f"document {document_id} does not exist")
    return Document(*row)


def _earlier_result(context: JobContext, document: Document) -> dict[str, Any] | None:
    """Return what the job, or one before it, has come to already."""
    log = context.db.execute(SQL["find_log"], {**document.ids, "extraction_id": context.key}).fetchone()
    extraction_id, obligations, flagged, *read, _ = log or (None, 0, 0, False, None, [])
    is_done = document.extraction_status == "COMPLETED" and not context.payload.force_reprocess
    if extraction_id != context.key and not is_done and not document.is_of_deleted_company:
        return None
    return _result(document.extraction_status, extraction_id, (obligations, flagged), Reading(*read))


def _result(status: str, extraction_id: str | None, counts: tuple[int, int], reading: Reading) -> dict[str, Any]:
    return {
        "status": status,
        "extraction_id": extraction_id,
        "obligations_extracted": counts[0],
        "flagged_for_review": counts[1],
        "ocr_required": reading.ocr_required,
        "ocr_confidence": reading.ocr_confidence,
    }


def store_text(db: Connection, document: Document, text: str, ocr_confidence: float | None) -> None:
    db.execute(SQL["store_text"], {**document.ids, "text": text, "ocr_confidence": ocr_confidence})


def text_of(db: Connection, document: Document) -> str:
    row = db.execute(SQL["find_text"], document.ids).fetchone()
    return str(row[0]) if row else ""


def rules_of(db: Connection, document: Document) -> list[tuple[Any, ...]]:
    """Return the rules of the document's module that are sure enough, the best first."""
    return db.execute(SQL["find_rules"], {"module_code": document.module_code}).fetchall()


def last_chunks(context: JobContext, document: Document) -> list[str]:
    """Return the SHA-256 of the chunks that the last log names."""
    log = context.db.execute(SQL["find_log"], {**document.ids, "extraction_id": context.key}).fetchone()
    return list(log[-1]) if log else []


def finish(context: JobContext, findings: Findings) -> dict[str, Any]:
    """Write all rows of the extraction, and return its result. A repeat finds the log, and writes nothing."""
    with context.db.transaction():
        document = _lock(context)
        if (result := _earlier_result(context, document)) is not None:
            return result
        status, counts = _store_obligations(context, document, findings)
        result = _result(status, context.key, counts, findings.reading)
        milliseconds = _store_log(context, document, findings, result)
        _tell(context, document, result, milliseconds)
    return result


def _store_obligations(context: JobContext, document: Document, findings: Findings) -> tuple[str, tuple[int, int]]:
    """Return the document's status, how many obligations are new, and how many of those need a review."""
    values = {
        **document.ids,
        "uploaded_by": document.uploaded_by,
        "extraction_id": context.key,
        "kept": list(findings.kept),
        "found": Jsonb([*findings.matched, *findings.extracted]),
    }
    context.db.execute(SQL["replace"], values)
    [kept] = context.db.execute(SQL["count_kept"], values).fetchone() or (0,)
    made, flagged = context.db.execute(SQL["add"], values).fetchone() or (0, 0)
    status, items = _judge(findings, has_found=bool(findings.matched or findings.extracted or kept))
    context.db.execute(SQL["add_items"], {**values, "items": Jsonb(items)})
    context.db.execute(SQL["finish"], {**values, "status": status})
    return status, (made, flagged)


def _judge(findings: Findings, *, has_found: bool) -> tuple[str, list[dict[str, Any]]]:
    """Return the document's status, and what a person must look at."""
    items: list[dict[str, Any]] = []
    if _is_poor(findings.reading):
        data = {"ocr_confidence": findings.reading.ocr_confidence}
        items.append({"review_type": "OCR_LOW_CONFIDENCE", "original_data": data})
    if findings.faults:
        items.append({"review_type": "VALIDATION_ERROR", "original_data": {"faults": list(findings.faults)}})
        return "REVIEW_REQUIRED", items
    if not has_found:
        items.append({"review_type": "ZERO_OBLIGATIONS", "original_data": {"segments": findings.log["segments"]}})
        return "ZERO_OBLIGATIONS", items
    return "COMPLETED", items


def _is_poor(reading: Reading) -> bool:
    return reading.ocr_confidence is not None and reading.ocr_confidence < _LEAST_OCR_CONFIDENCE


def _store_log(context: JobContext, document: Document, findings: Findings, result: Mapping[str, Any]) -> int:
    warnings = list(findings.log["warnings"])
    if _is_poor(findings.reading):
        warnings.append("Textract is not sure of the text")
    if findings.reading.is_partial:
        warnings.append("Textract could not read some of the pages")
    metadata = {
        "rules_library_matches": len(findings.matched),
        "ai_extractions": len(findings.extracted),
        "chunks": list(findings.chunks),
    }
    values = {
        **document.ids,
        **findings.log,
        **result,
        "began": context.job.first_started_at or context.now,
        "errors": Jsonb(list(findings.faults)),
        "warnings": Jsonb(warnings),
        "metadata": Jsonb(metadata),
    }
    row = context.db.execute(SQL["add_log"], values).fetchone()
    return int(row[0]) if row else 0


def _tell(context: JobContext, document: Document, result: Mapping[str, Any], milliseconds: int) -> None:
    """Tell who uploaded the document."""
    uploader = People.of(context.db, document.company_id).one(document.uploaded_by)
    if uploader is None:
        facts = {"document_id": document.id, "company_id": document.company_id}
        context.log.warning("compliance.recipient_missing", extra=facts)
        return
    flagged = result["flagged_for_review"]
    words = (
        f'"{document.title or "Document"}" has been processed. {result["obligations_extracted"]} obligations extracted.'
    )
    notification = Notification(
        to=uploader,
        channel="IN_APP",
        job_type="document_processing",
        entity_type="DOCUMENT",
        entity_id=document.id,
        parts=context.key,
        alert_type="SYSTEM",
        severity="INFO",
        title="Document Processed Successfully",
        message=words + (f" {flagged} items flagged for review." if flagged else ""),
        site_id=document.site_id,
        action_url=f"/documents/{document.id}",
        metadata={
            "obligations_extracted": result["obligations_extracted"],
            "flagged_for_review": flagged,
            "processing_time_ms": milliseconds,
        },
    )
    notify(context, document.company_id, [notification])
