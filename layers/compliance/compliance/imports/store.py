"""Read and write the rows of imports. Ten thousand rows take as many queries as one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid5

from psycopg.types.json import Jsonb

from compliance.imports.import_rows import ImportRow, Key, Sites
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)


@dataclass(frozen=True, slots=True)
class Import:
    """Hold the facts of an import."""

    id: str
    company_id: str
    site_id: str
    user_id: str | None
    file_path: str
    options: Mapping[str, Any]
    status: str
    is_of_deleted_company: bool

    @property
    def ids(self) -> dict[str, Any]:
        return {"import_id": self.id, "company_id": self.company_id, "user_id": self.user_id}

    def new_id(self, what: str) -> str:
        """Return the id of something that the import makes, the same in each attempt."""
        return str(uuid5(UUID(self.id), what))


def find_import(db: Connection, import_id: str) -> Import | None:
    row = db.execute(SQL["find"], {"import_id": import_id}).fetchone()
    return Import(*row) if row else None


def counts_of(db: Connection, found: Import) -> dict[str, Any]:
    row = db.execute(SQL["counts"], found.ids).fetchone() or ()
    return dict(zip(("status", "row_count", "valid_count", "error_count", "success_count"), row, strict=True))


def find_sites(db: Connection, found: Import, texts: Iterable[str]) -> Sites:
    rows = db.execute(SQL["find_sites"], {**found.ids, "texts": list(set(texts))}).fetchall()
    return Sites({id_ for id_, is_ours in rows if is_ours}, {id_ for id_, is_ours in rows if not is_ours})


def find_duplicates(db: Connection, found: Import, rows: Iterable[ImportRow]) -> set[Key]:
    names = ("permit_number", "obligation_title", "site_id")
    given = [{name: row.data[name] for name in names} for row in rows if not row.errors]
    return set(db.execute(SQL["find_duplicates"], {**found.ids, "rows": Jsonb(given)}).fetchall())


def store_preview(db: Connection, found: Import, preview: Mapping[str, Any]) -> None:
    lists = {name: Jsonb(preview[name]) for name in ("valid_rows", "error_rows", "warning_rows")}
    db.execute(SQL["store_preview"], {**found.ids, **lists, "row_count": preview["row_count"]})


def find_preview(db: Connection, found: Import) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the valid rows and the bad ones."""
    valid, errors = db.execute(SQL["find_preview"], found.ids).fetchone() or ([], [])
    return valid, errors


def add_sites(db: Connection, found: Import, names: Mapping[str, str]) -> dict[str, str]:
    """Make a site for each text, with that name; return their ids by the text."""
    ids = {text: found.new_id(f"site:{text}") for text in names}
    sites = [{"id": ids[text], "name": name} for text, name in names.items()]
    db.execute(SQL["add_sites"], {**found.ids, "sites": Jsonb(sites)})
    return ids


Permit = tuple[str, str]  # its number and its site


def find_permits(db: Connection, found: Import, permits: Collection[Permit]) -> dict[Permit, str]:
    """Return the documents of those permits that there are."""
    given = [{"permit_number": number, "site_id": site_id} for number, site_id in permits]
    rows = db.execute(SQL["find_permits"], {**found.ids, "permits": Jsonb(given)}).fetchall()
    return {(number, site_id): document_id for number, site_id, document_id in rows}


def add_permits(db: Connection, found: Import, permits: Iterable[Permit]) -> dict[Permit, str]:
    ids = {(number, site_id): found.new_id(f"permit:{site_id}:{number}") for number, site_id in permits}
    given = [{"id": id_, "permit_number": number, "site_id": site_id} for (number, site_id), id_ in ids.items()]
    db.execute(SQL["add_permits"], {**found.ids, "permits": Jsonb(given)})
    return ids


def add_obligations(db: Connection, found: Import, rows: Iterable[Mapping[str, Any]]) -> None:
    """Make the obligations of rows, which name their sites and documents by now."""
    given = [{**row["data"], "id": found.new_id(f"row:{row['row_number']}")} for row in rows]
    db.execute(SQL["add_obligations"], {**found.ids, "rows": Jsonb(given)})


def complete(
    db: Connection, found: Import, valid: Sequence[Mapping[str, Any]], errors: Sequence[Mapping[str, Any]], made: int
) -> None:
    lists = {"valid_rows": Jsonb(list(valid)), "error_rows": Jsonb(list(errors))}
    db.execute(SQL["complete"], {**found.ids, **lists, "success_count": made})
