"""Check the rows of a spreadsheet, and say of each what is wrong. Nothing here reads or writes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from compliance.imports.columns import FIELDS
from signalbox.documents.spreadsheet import Cell
from signalbox.postgres.pg_text import clean

FREQUENCIES = {
    "daily": "DAILY",
    "weekly": "WEEKLY",
    "monthly": "MONTHLY",
    "quarterly": "QUARTERLY",
    "annually": "ANNUAL",
    "one-time": "ONE_TIME",
}
_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ].+)?")
_BRITISH = re.compile(r"\d\d/\d\d/\d{4}")
Key = tuple[str, str, str]  # permit, title, site: what makes two obligations the same


@dataclass(slots=True)
class ImportRow:
    """Hold one row in our names, and what is said of it."""

    row_number: int  # as a person counts: the header is row 1
    data: dict[str, Any]
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    is_duplicate: bool = False

    @property
    def key(self) -> Key:
        return self.data["permit_number"], self.data["obligation_title"], self.data["site_id"]


@dataclass(frozen=True, slots=True)
class Sites:
    """Hold which of the sites that rows name there are."""

    ours: Collection[str]
    others: Collection[str]  # of other companies


def read_import_rows(cells: Iterable[Sequence[Cell]], columns: Mapping[str, int], site_id: str) -> list[ImportRow]:
    """Return the rows below the header, without empty ones; those that name no site are of the import's."""
    rows = [(number, [_text(cell) for cell in row], row) for number, row in enumerate(cells, start=2)]
    return [_row(number, texts, row, columns, site_id) for number, texts, row in rows if any(texts)]


def _row(
    number: int, texts: list[str | None], cells: Sequence[Cell], columns: Mapping[str, int], site_id: str
) -> ImportRow:
    data: dict[str, Any] = {
        name: texts[columns[name]] if name in columns and columns[name] < len(texts) else None for name in FIELDS
    }
    deadline = _date(cells[columns["deadline_date"]]) if columns["deadline_date"] < len(cells) else None
    frequency = FREQUENCIES.get((data["frequency"] or "").casefold())
    faults = {
        "Missing permit_number": data["permit_number"] is None,
        "Missing obligation_title": data["obligation_title"] is None,
        "Invalid date format": deadline is None,
        "Invalid frequency value": frequency is None,
    }
    data |= {"deadline_date": deadline, "frequency": frequency, "site_id": data["site_id"] or site_id}
    return ImportRow(number, data, [text for text, is_wrong in faults.items() if is_wrong])


def _text(cell: Cell) -> str | None:
    """Return a cell's text, of a whole number without ".0"; None for an empty one."""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return None if cell is None else clean(str(cell)).strip() or None


def _date(cell: Cell) -> str | None:
    """Return the day in ISO's form: of a date cell, or of a text in one of the two forms that are read."""
    if isinstance(cell, date):
        return cell.isoformat()[:10]
    text = cell.strip() if isinstance(cell, str) else ""
    try:
        if _BRITISH.fullmatch(text):
            return date(*map(int, reversed(text.split("/")))).isoformat()
        return datetime.fromisoformat(text).date().isoformat() if _ISO.fullmatch(text) else None
    except ValueError:
        return None


def check_sites(rows: Iterable[ImportRow], sites: Sites, *, may_create: bool) -> None:
    """Say of each row whether its site is there. A site of another company is as good as absent, and never made."""
    for row in rows:
        site_id = row.data["site_id"]
        if site_id.lower() in sites.ours:
            row.data["site_id"] = site_id.lower()
        elif may_create and site_id.lower() not in sites.others:
            row.warnings.append("Site will be created")
        else:
            row.errors.append("Site not found")


def check_duplicates(rows: Iterable[ImportRow], existing: Collection[Key]) -> None:
    """Say of each good row whether its obligation is there, or in a row before it."""
    seen = set(existing)
    for row in rows:
        if row.errors:
            continue
        if row.key in seen:
            row.is_duplicate = True
            row.warnings.append("Duplicate obligation")
        seen.add(row.key)


def preview_of(rows: Sequence[ImportRow], *, skip_duplicates: bool) -> dict[str, Any]:
    """Return what a person is shown before the import goes on."""
    good = [row for row in rows if not row.errors]
    valid = [row for row in good if not (skip_duplicates and row.is_duplicate)]
    return {
        "valid_rows": [{"row_number": row.row_number, "data": row.data} for row in valid],
        "error_rows": [{"row_number": row.row_number, "errors": row.errors} for row in rows if row.errors],
        "warning_rows": [{"row_number": row.row_number, "warnings": row.warnings} for row in good if row.warnings],
        "row_count": len(rows),
    }
