"""Read a permit, extract its obligations, and queue what is doubtful for review.

load → [Textract reads the scan, looked at every 5 s] → rules → the model, one chunk a piece → one transaction

The cursor says which step is next. What the rules and the model have found is kept as steps of the job
(`context.once`): no retry or redrive asks the model again for what it has answered, and the cursor stays small.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Any, Literal
from uuid import UUID

from compliance.company.files import files_of
from compliance.documents import segments, store
from compliance.documents.extraction import question_of, read_answer
from compliance.documents.rules import RulesLibrary
from compliance.documents.store import Document, Findings, Reading
from compliance.settings import ComplianceSettings
from signalbox import Completed, JobContext, JobPayload, More, Permanent, Snooze
from signalbox.aws.bucket import Bucket
from signalbox.documents import ocr
from signalbox.documents.model import AnswerCut, Bedrock, ask
from signalbox.documents.pdf_text import read_pages

_LOOK_EVERY = timedelta(seconds=5)
_MOST_PAGES = 3000  # that Textract reads
_MOST_BYTES = 100_000_000  # of a PDF that is read here
_LARGE_PAGES, _LARGE_BYTES = 50, 10_000_000
_MODEL_SECONDS, _MODEL_SECONDS_OF_LARGE = 30, 300


class DocumentProcessing(JobPayload):
    """Say which document, and whether to read it again."""

    document_id: UUID
    force_reprocess: bool = False
    extraction_mode: Literal["FULL", "INCREMENTAL"] = "FULL"


class FileMissing(Permanent):
    """The document has no file."""


def document_processing(context: JobContext) -> Completed | More | Snooze:
    """The result is what the extraction came to; one that has ended before is not repeated."""
    begun = store.begin(context)
    if not isinstance(begun, Document):
        return Completed(begun)
    cursor: dict[str, Any] = context.cursor or {"step": "load"}
    context.note(step=cursor["step"], document_id=begun.id)
    match cursor["step"]:
        case "load":
            return _load(context, begun)
        case "ocr":
            return _scan(context, begun, cursor)
        case "rules":
            return _apply_rules(context, begun, cursor)
    return _extract(context, begun, cursor)


def _load(context: JobContext, document: Document) -> More:
    """Read the file's text, or have Textract read it where there is none."""
    context.report(5, "Loading the document")
    files, key = files_of(context), f"{document.folder}/original.pdf"
    found = files.facts(key)
    if found is None:
        raise FileMissing("File not found")
    pages = [] if document.needs_ocr else _pages(files, key, found.bytes)
    large = document.is_large or len(pages) >= _LARGE_PAGES or found.bytes >= _LARGE_BYTES
    if not any(pages):
        return More({"step": "ocr", "large": large, "scan": None})
    _store_text(context, document, segments.join_pages(pages), None)
    return More({"step": "rules", "large": large, "reading": asdict(Reading(ocr_required=False))})


def _pages(files: Bucket, key: str, size: int) -> list[str]:
    if size > _MOST_BYTES:
        raise Permanent(f"the PDF has {size} bytes, and at most {_MOST_BYTES} are read")
    return read_pages(files.read(key) or b"", _MOST_PAGES)


def _scan(context: JobContext, document: Document, cursor: dict[str, Any]) -> More | Snooze:
    """Start Textract, or look whether it has read the scan."""
    context.report(10, "Reading the scan")
    if cursor["scan"] is None:
        bucket = context.resources.settings_of(ComplianceSettings).bucket
        scan = ocr.start(context.clients.textract, bucket, f"{document.folder}/original.pdf", context.key)
        return Snooze(_LOOK_EVERY, "Textract reads the scan", {**cursor, "scan": scan})
    scanned = ocr.look(context.clients.textract, cursor["scan"])
    if scanned is None:
        return Snooze(_LOOK_EVERY, "Textract reads the scan")
    text = segments.join_pages(scanned.texts)
    _store_text(context, document, text, scanned.confidence)
    large = cursor["large"] or len(scanned.pages) >= _LARGE_PAGES
    reading = Reading(True, scanned.confidence, scanned.is_partial)
    return More({"step": "rules", "large": large, "reading": asdict(reading)})


def _store_text(context: JobContext, document: Document, text: str, ocr_confidence: float | None) -> None:
    key = f"{document.folder}/extracted_text.txt"
    files_of(context).write(key, text.encode(), "text/plain; charset=utf-8")
    store.store_text(context.db, document, text, ocr_confidence)


def _apply_rules(context: JobContext, document: Document, cursor: dict[str, Any]) -> Completed | More:
    """Divide the text into what rules know and what the model is asked about."""
    context.report(20, "Checking the rules library")
    plan = context.once("plan", lambda: _plan(context, document))
    todo = [str(place) for place, chunk in enumerate(plan["chunks"]) if segments.sha256_of(chunk) not in plan["kept"]]
    further = {"step": "extract", "large": cursor["large"], "reading": cursor["reading"], "todo": todo, "done": []}
    return More(further) if todo else _finish(context, further, plan)


def _plan(context: JobContext, document: Document) -> dict[str, Any]:
    payload: DocumentProcessing = context.payload
    rows = store.rules_of(context.db, document)
    library = RulesLibrary.of([row[:4] for row in rows])
    parts = segments.split(store.text_of(context.db, document))
    found = [(part, library.find(part)) for part in parts]
    chunks = segments.join(part for part, rule in found if rule is None)
    known = store.last_chunks(context, document) if payload.extraction_mode == "INCREMENTAL" else []
    return {
        "matched": [rule.obligation(part) for part, rule in found if rule is not None],
        "chunks": chunks,
        "kept": [sha256 for sha256 in map(segments.sha256_of, chunks) if sha256 in known],
        "log": {
            "segments": len(parts),
            "version": max((row[4] for row in rows if row[4]), default=None),
            "warnings": library.warnings,
        },
    }


def _extract(context: JobContext, document: Document, cursor: dict[str, Any]) -> Completed | More:
    """Ask the model about one chunk, or a part of one; finish after the last."""
    plan = context.once("plan", lambda: _plan(context, document))
    name, *todo = cursor["todo"]
    done = len(cursor["done"])
    context.report(20 + 75 * done // (done + 1 + len(todo)), f"Reading part {done + 1} of {done + 1 + len(todo)}")
    seconds = _MODEL_SECONDS_OF_LARGE if cursor["large"] else _MODEL_SECONDS
    answer = context.once(f"chunk:{name}", lambda: _ask(context, document, _part(plan["chunks"], name), seconds))
    if answer.get("is_cut"):
        return More({**cursor, "todo": [f"{name}.0", f"{name}.1", *todo]})
    further = {**cursor, "todo": todo, "done": [*cursor["done"], name]}
    return More(further) if todo else _finish(context, further, plan)


def _part(chunks: list[str], name: str) -> str:
    """Return the part of a name: "2" is a chunk, "2.0" its first half, and so on."""
    place, *sides = map(int, name.split("."))
    part = chunks[place]
    for side in sides:
        part = segments.halves(part)[side]
    return part


def _ask(context: JobContext, document: Document, part: str, most_seconds: float) -> dict[str, Any]:
    model_id = context.resources.settings_of(ComplianceSettings).model_id
    facts = {"Document type": document.document_type, "Module": document.module_code}
    question = question_of(model_id, part, facts, most_seconds)
    try:
        answer = ask(Bedrock(context.resources.settings.stack), question, context.budget)
    except AnswerCut:
        if len(segments.halves(part)) < 2:
            raise
        return {"is_cut": True}
    return read_answer(answer.output)


def _finish(context: JobContext, cursor: dict[str, Any], plan: dict[str, Any]) -> Completed:
    context.report(95, "Storing the obligations")
    answers = [(name, context.once(f"chunk:{name}", _forgotten)) for name in cursor["done"]]
    hashes = [segments.sha256_of(chunk) for chunk in plan["chunks"]]
    extracted = [
        {**one, "chunk_sha256": hashes[int(name.split(".")[0])]}
        for name, found in answers
        for one in found["obligations"]
    ]
    findings = Findings(
        reading=Reading(**cursor["reading"]),
        matched=plan["matched"],
        extracted=extracted,
        faults=[fault for _, found in answers for fault in found["faults"]],
        chunks=hashes,
        kept=plan["kept"],
        log={**plan["log"], "model_id": context.resources.settings_of(ComplianceSettings).model_id},
    )
    return Completed(store.finish(context, findings))


def _forgotten() -> None:
    raise Permanent("an answer of the model was not kept: submit the job again")
