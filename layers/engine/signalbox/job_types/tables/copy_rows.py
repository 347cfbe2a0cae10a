"""Turn a record's bytes into a row: find what would break COPY, stage the record, and read it from there.

Only what would end a COPY is looked for here. Only the server knows whether a value fits its column.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from psycopg import sql

from signalbox.packs.outcome import Permanent

MOST_FIELDS = 1500  # of the 1,600 columns that a table may have
_QUOTED = re.compile(rb'"[^"]*"')
# JSON allows them as raw bytes only outside of texts, where they are not needed.
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f]")


@dataclass(frozen=True, slots=True)
class Column:
    """Describe a column to fill: its name and type in the table, and the field of the file for it."""

    name: str
    type: str  # as format_type() wrote it, with quotes where needed
    field: str

    @property
    def type_name(self) -> sql.SQL:
        return sql.SQL(self.type)


class Form(Protocol):
    """Read one format: CSV or lines of JSON."""

    @property
    def staged(self) -> Sequence[str]:
        """Return the staging table's columns beside the line's number."""
        ...

    @property
    def options(self) -> sql.Composable:
        """Return the options for COPY."""
        ...

    def fault_of(self, content: bytes) -> str | None:
        """Return why COPY would not take the record, or None."""
        ...

    def stage(self, line: int, content: bytes) -> bytes:
        """Return the record with its line's number, as COPY takes it."""
        ...

    def texts(self, columns: Sequence[Column]) -> list[tuple[str | None, str, str]]:
        """Return for each column the staged text and the type to read it as."""
        ...

    def read(self, staging: sql.Identifier, columns: Sequence[Column]) -> sql.Composed:
        """Return a query's SELECT and FROM for these columns, and `staged.line`."""
        ...


@dataclass(frozen=True, slots=True)
class CsvForm:
    """Read RFC 4180, with NULL as in COPY: a field that is empty and not in quotes."""

    fields: tuple[str, ...]
    delimiter: str
    null: str

    @property
    def staged(self) -> Sequence[str]:
        return [f"f{place}" for place in range(len(self.fields))]

    @property
    def options(self) -> sql.Composable:
        options = sql.SQL("(FORMAT csv, DELIMITER {}, NULL {})")
        return options.format(sql.Literal(self.delimiter), sql.Literal(self.null))

    def fault_of(self, content: bytes) -> str | None:
        if fault := _unfit(content):
            return fault
        bare = _QUOTED.sub(b"", content) if b'"' in content else content
        if (found := bare.count(self.delimiter.encode()) + 1) != len(self.fields):
            return f"has {found} fields where {len(self.fields)} were expected"
        return "holds a carriage return outside of quotes" if b"\r" in bare else None

    def stage(self, line: int, content: bytes) -> bytes:
        # Quote the number, since a NULL may be written as any number.
        return b'"%d"%s%s\n' % (line, self.delimiter.encode(), content)

    def texts(self, columns: Sequence[Column]) -> list[tuple[str | None, str, str]]:
        places = {field: place for place, field in enumerate(self.fields)}
        return [(column.name, f"f{places[column.field]}", column.type) for column in columns]

    def read(self, staging: sql.Identifier, columns: Sequence[Column]) -> sql.Composed:
        values = [
            sql.SQL("{}::{} AS {}").format(sql.Identifier(text), column.type_name, sql.Identifier(column.name))
            for column, (_, text, _) in zip(columns, self.texts(columns), strict=True)
        ]
        return sql.SQL("SELECT staged.line AS {}, {} FROM {} AS staged").format(
            LINE, sql.SQL(", ").join(values), staging
        )


@dataclass(frozen=True, slots=True)
class JsonForm:
    """Read one JSON object a line."""

    @property
    def staged(self) -> Sequence[str]:
        return ["object"]

    @property
    def options(self) -> sql.Composable:
        # JSON never uses these characters, so nothing in it is read as a quote or as a field's end.
        return sql.SQL(r"(FORMAT csv, DELIMITER E'\x02', QUOTE E'\x01', NULL '')")

    def fault_of(self, content: bytes) -> str | None:
        if fault := _unfit(content):
            return fault
        return "holds a control character, which JSON does not allow" if _CONTROL.search(content) else None

    def stage(self, line: int, content: bytes) -> bytes:
        return b"%d\x02%s\n" % (line, content)

    def texts(self, columns: Sequence[Column]) -> list[tuple[str | None, str, str]]:
        return [(None, "object", "jsonb")]  # the fields of a line are read only where it is one

    def read(self, staging: sql.Identifier, columns: Sequence[Column]) -> sql.Composed:
        # This raises for a line that is no object, where ->> would give NULL.
        query = sql.SQL(
            "SELECT staged.line AS {}, {} FROM {} AS staged CROSS JOIN LATERAL jsonb_to_record(object::jsonb) AS r ({})"
        )
        values = [
            sql.SQL("r.{} AS {}").format(sql.Identifier(column.field), sql.Identifier(column.name))
            for column in columns
        ]
        fields = [sql.SQL("{} {}").format(sql.Identifier(column.field), column.type_name) for column in columns]
        return query.format(LINE, sql.SQL(", ").join(values), staging, sql.SQL(", ").join(fields))


# The name differs from a table's own columns, which may include `line`.
LINE = sql.Identifier("signalbox:line")


def _unfit(content: bytes) -> str | None:
    if b"\0" in content:
        return "holds a NUL character: is the file UTF-16?"
    try:
        content.decode()
    except UnicodeDecodeError:
        return "is not UTF-8"
    return None


def read_header(content: bytes | None, delimiter: str) -> tuple[str, ...]:
    """Return the fields' names in a CSV file's first record."""
    if content is None or (fault := _unfit(content)):
        raise Permanent(f"the file's header {fault if content else 'is too long'}: no row was read")
    names = next(csv.reader(io.StringIO(content.decode()), delimiter=delimiter, strict=True), [])
    if len(names) > MOST_FIELDS:
        raise Permanent(f"the file's header has {len(names)} fields, and {MOST_FIELDS} are the most")
    return tuple(names)
