"""Check a spreadsheet of obligations, and create them once a person has confirmed.

VALIDATE: file → rows → checks → preview. CREATE: preview → sites → permits → obligations with their deadlines.
Each phase writes in one transaction, and does nothing where the import is not in the status that it begins from.
"""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from compliance.company.company_job import lock_company
from compliance.company.files import files_of
from compliance.company.notify import Notification, notify
from compliance.company.people import People
from compliance.imports import store
from compliance.imports.columns import map_columns, missing_columns
from compliance.imports.import_rows import ImportRow, check_duplicates, check_sites, preview_of, read_import_rows
from compliance.imports.store import Import
from signalbox import Completed, JobContext, JobPayload, Permanent, Snooze
from signalbox.documents.spreadsheet import Cell, read_rows

MOST_ROWS = 10_000
MOST_BYTES = 10_000_000
_MOST_LINES = 100_000  # empty ones too, which are not counted


class ImportOptions(BaseModel):
    """Say what an import may make, and which columns are meant."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    create_missing_sites: bool = False
    create_missing_permits: bool = False
    skip_duplicates: bool = True
    column_mapping: dict[str, str] = Field(default_factory=dict)


class ExcelImportProcessing(JobPayload):
    """Say which import, and which of its two halves. The import's own row holds; a payload may not differ from it."""

    import_id: UUID
    file_path: str
    site_id: UUID
    user_id: UUID
    import_options: ImportOptions
    phase: Literal["VALIDATE", "CREATE"]


class PayloadDiffers(Permanent):
    """The payload is not that of the import, which stays as it is."""


class FileRefused(Permanent):
    """The file can't be imported. Its message is the import's error_message."""


def excel_import_processing(context: JobContext) -> Completed | Snooze:
    """The result is the import's status and counts, whether this job or one before it has done the phase."""
    found = _find(context)
    context.note(step=context.payload.phase, import_id=found.id)
    if _is_due(context, found):
        phase = _validate if context.payload.phase == "VALIDATE" else _create
        if busy := phase(context, found):
            return busy
    return Completed(store.counts_of(context.db, found))


def _find(context: JobContext) -> Import:
    payload: ExcelImportProcessing = context.payload
    found = store.find_import(context.db, str(payload.import_id))
    if found is None:
        raise Permanent(f"import {payload.import_id} does not exist, or its site is another company's")
    given = (str(payload.site_id), str(payload.user_id), payload.file_path, payload.import_options)
    if given != (found.site_id, found.user_id, found.file_path, _options_of(found)):
        raise PayloadDiffers(f"the payload differs from import {found.id}: submit what the import says")
    return found


def _options_of(found: Import) -> ImportOptions:
    try:
        return ImportOptions.model_validate(found.options)
    except ValidationError:
        raise Permanent(f"the options of import {found.id} can't be read") from None


def _is_due(context: JobContext, found: Import) -> bool:
    begins_from = "PENDING" if context.payload.phase == "VALIDATE" else "PENDING_REVIEW"
    return found.status == begins_from and not found.is_of_deleted_company


# ---- VALIDATE


def _validate(context: JobContext, found: Import) -> None:
    options: ImportOptions = context.payload.import_options
    context.report(10, "Reading the spreadsheet")
    rows = _read(context, found, options)
    context.report(50, f"Checking {len(rows)} rows")
    with context.db.transaction():
        if not _is_due(context, _find(context)):
            return
        sites = store.find_sites(context.db, found, (row.data["site_id"] for row in rows))
        check_sites(rows, sites, may_create=options.create_missing_sites)
        check_duplicates(rows, store.find_duplicates(context.db, found, rows))
        preview = preview_of(rows, skip_duplicates=options.skip_duplicates)
        store.store_preview(context.db, found, preview)
        valid, errors = len(preview["valid_rows"]), len(preview["error_rows"])
        message = f"Your Excel import is ready. {valid} valid rows, {errors} errors."
        address = f"/obligations/import/{found.id}/preview"
        _tell(context, found, "Excel import ready for review", message, address)


def _read(context: JobContext, found: Import, options: ImportOptions) -> list[ImportRow]:
    header, *cells = _cells(context, found) or [[]]
    columns = map_columns(header, options.column_mapping)
    if missing := missing_columns(columns):
        raise FileRefused("; ".join(f"Missing required column: {name}" for name in missing))
    rows = read_import_rows(cells, columns, found.site_id)
    if len(rows) > MOST_ROWS:
        raise FileRefused("Too many rows (>10,000)")
    return rows


def _cells(context: JobContext, found: Import) -> list[list[Cell]]:
    data = files_of(context).read(found.file_path, MOST_BYTES)
    if data is None:
        raise FileRefused("File not found")
    if len(data) > MOST_BYTES:
        raise FileRefused("File too large (>10MB)")
    try:
        return read_rows(data, most_rows=_MOST_LINES)
    except Permanent as error:
        raise FileRefused(f"Invalid file format: {error}") from None


# ---- CREATE


def _create(context: JobContext, found: Import) -> Snooze | None:
    context.report(10, "Creating obligations")
    with context.db.transaction():
        # So that two imports at once make no permit twice.
        if isinstance(busy := lock_company(context, found.company_id), Snooze):
            return busy
        if not _is_due(context, _find(context)):
            return None
        valid, errors = store.find_preview(context.db, found)
        rows, refused = _place(context, found, valid)
        store.add_obligations(context.db, found, rows)
        numbers = {one["row_number"] for one in refused}
        kept = [row for row in valid if row["row_number"] not in numbers]
        all_errors = sorted([*errors, *refused], key=lambda one: one["row_number"])
        store.complete(context.db, found, kept, all_errors, len(rows))
        message = f"{len(rows)} obligations imported successfully."
        _tell(context, found, "Excel import completed", message, f"/sites/{found.site_id}/obligations")
    return None


def _place(
    context: JobContext, found: Import, valid: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows with the ids of their sites and documents, and those that have none."""
    options: ImportOptions = context.payload.import_options
    sites = _sites_of(context, found, valid)
    placed = [(row, {**row["data"], "site_id": sites.get(row["data"]["site_id"])}) for row in valid]
    permits = {(data["permit_number"], data["site_id"]) for _, data in placed if data["site_id"]}
    documents = store.find_permits(context.db, found, permits)
    if options.create_missing_permits:
        documents |= store.add_permits(context.db, found, sorted(permits - documents.keys()))
    rows, refused = [], []
    for row, data in placed:
        document_id = documents.get((data["permit_number"], data["site_id"]))
        if document_id is not None:
            rows.append({**row, "data": {**data, "document_id": document_id}})
        else:
            reason = "Permit not found" if data["site_id"] else "Site not found"
            refused.append({"row_number": row["row_number"], "errors": [reason]})
    return rows, refused


def _sites_of(context: JobContext, found: Import, valid: list[dict[str, Any]]) -> dict[str, str]:
    """Return the ids of the sites that rows name, and make those that the import may make."""
    names: dict[str, str] = {}
    for data in (row["data"] for row in valid):
        names[data["site_id"]] = names.get(data["site_id"]) or data["site_name"]
    sites = store.find_sites(context.db, found, names)
    known = {text: text.lower() for text in names if text.lower() in sites.ours}
    if not context.payload.import_options.create_missing_sites:
        return known
    new = {text: name or text for text, name in names.items() if text not in known and text.lower() not in sites.others}
    return known | store.add_sites(context.db, found, new)


def _tell(context: JobContext, found: Import, title: str, message: str, action_url: str) -> None:
    """Tell who has uploaded the file."""
    user = People.of(context.db, found.company_id).one(found.user_id)
    if user is None:
        facts = {"import_id": found.id, "company_id": found.company_id}
        context.log.warning("compliance.recipient_missing", extra=facts)
        return
    notification = Notification(
        to=user,
        channel="EMAIL",
        job_type="excel_import_processing",
        entity_type="EXCEL_IMPORT",
        entity_id=found.id,
        parts=context.key,
        alert_type="SYSTEM",
        severity="INFO",
        title=title,
        message=message,
        site_id=found.site_id,
        action_url=action_url,
    )
    notify(context, found.company_id, [notification])
