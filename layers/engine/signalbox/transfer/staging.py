"""Brings records into a table: by COPY into a staging table of this transaction, from there in one INSERT.

What the server refuses is narrowed down to its rows by halves, each in a savepoint, so that any fault of a row (a
value, a constraint, a trigger) is found without knowing it beforehand. The staging table is never committed. It is no
temporary one, because those make a proxy pin the session.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import psycopg
from psycopg import errors, sql

from signalbox.database import Connection
from signalbox.jobs.outcome import Permanent
from signalbox.transfer.forms import LINE, Column, Form
from signalbox.transfer.table import Table

BUFFER = 64 << 10
SHOWN = 100  # bad rows that a job's result tells of, and
NAMED = 10  # that its error does
# What a row's own content can cause.
ROW_FAULTS = (
    psycopg.DataError,
    psycopg.IntegrityError,
    errors.RaiseException,
    errors.ProgramLimitExceeded,
    errors.StatementTooComplex,
)
OnConflict = Literal["fail", "skip", "update"]


@dataclass(slots=True)
class BadRows:
    """Those that were left out: how many there may be, how many there are, and which ones; never what they hold."""

    most: int
    count: int = 0
    shown: list[dict[str, Any]] = field(default_factory=list)

    def add(self, line: int, fault: str) -> None:
        self.count += 1
        if len(self.shown) < SHOWN:
            self.shown.append({"line": line, "fault": fault})
        if self.count > self.most:
            named = "; ".join(f"line {row['line']} {row['fault']}" for row in self.shown[-NAMED:])
            raise Permanent(
                f"{self.count} bad rows, and max_bad_rows is {self.most}: {named}; nothing of this chunk was kept, and "
                "earlier chunks were: begin anew with on_conflict skip or update, or take their rows out first"
            )


@dataclass(frozen=True, slots=True)
class Target:
    """Where rows go, and what becomes of one that is there already."""

    table: Table
    columns: tuple[Column, ...]
    on_conflict: OnConflict
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Staging:
    """Owns the staging table inside the caller's transaction."""

    db: Connection
    table: sql.Identifier
    form: Form
    target: Target
    bad: BadRows

    @staticmethod
    def create(db: Connection, job_id: str, form: Form, target: Target, bad: BadRows) -> Staging:
        table = sql.Identifier("signalbox_staging", f"import_{job_id.replace('-', '')}")
        columns = [sql.SQL("{} text").format(sql.Identifier(name)) for name in form.staged]
        create = sql.SQL("CREATE UNLOGGED TABLE {} (line bigint, {})")
        db.execute(create.format(table, sql.SQL(", ").join(columns)))
        # A deferred one would fail the whole chunk at its end, and name no row.
        db.execute("SET CONSTRAINTS ALL IMMEDIATE")
        return Staging(db, table, form, target, bad)

    def copy(self, records: Iterable[tuple[int, bytes]]) -> None:
        """Stages what COPY takes of them; the rest are bad rows."""
        statement = sql.SQL("COPY {} FROM STDIN {}").format(self.table, self.form.options)
        with self.db.cursor().copy(statement) as copy:
            buffer = bytearray()
            for line, content in records:
                if fault := self.form.fault_of(content):
                    self.bad.add(line, fault)
                    continue
                buffer += self.form.stage(line, content)
                if len(buffer) >= BUFFER:
                    copy.write(bytes(buffer))
                    buffer.clear()
            copy.write(bytes(buffer))

    def insert(self, first: int, end: int) -> int:
        """How many rows of these lines were written."""
        try:
            return self._insert(self._statement(), first, end)
        except errors.InvalidColumnReference:
            keys = ", ".join(self.target.keys)
            raise Permanent(
                f"{self.target.table.schema}.{self.target.table.name} has no unique index over ({keys}): "
                "on_conflict needs one over its keys"
            ) from None

    def drop(self) -> None:
        self.db.execute(sql.SQL("DROP TABLE {}").format(self.table))

    def _insert(self, statement: sql.Composed, first: int, end: int) -> int:
        try:
            with self.db.transaction():
                return self.db.execute(statement, {"first": first, "end": end}).rowcount
        except ROW_FAULTS as error:
            if end - first == 1:
                self.bad.add(first, self._describe(first, error))
                return 0
        middle = (first + end) // 2
        # In the order of the file: of two rows with one key the later one wins, or is the one that is left out.
        return self._insert(statement, first, middle) + self._insert(statement, middle, end)

    def _statement(self) -> sql.Composed:
        names = [sql.Identifier(column.name) for column in self.target.columns]
        insert = sql.SQL("INSERT INTO {} ({}) {} {}")
        listed = sql.SQL(", ").join(names)
        return insert.format(self.target.table.identifier, listed, self._rows(listed), self._on_conflict())

    def _rows(self, listed: sql.Composed) -> sql.Composed:
        source = self.form.read(self.table, self.target.columns)
        given = sql.SQL("({} WHERE line >= %(first)s AND line < %(end)s) AS given").format(source)
        if self.target.on_conflict == "fail":
            return sql.SQL("SELECT {} FROM {}").format(listed, given)  # a sort would take as long as all the rest
        if self.target.on_conflict == "skip":
            return sql.SQL("SELECT {} FROM {} ORDER BY {}").format(listed, given, LINE)
        # One statement updates no row twice.
        keys = sql.SQL(", ").join(map(sql.Identifier, self.target.keys))
        last = sql.SQL("SELECT DISTINCT ON ({0}) * FROM {1} ORDER BY {0}, {2} DESC").format(keys, given, LINE)
        return sql.SQL("SELECT {} FROM ({}) AS last").format(listed, last)

    def _on_conflict(self) -> sql.Composable:
        if self.target.on_conflict == "fail":
            return sql.SQL("")
        keys = sql.SQL(", ").join(map(sql.Identifier, self.target.keys))
        on = sql.SQL("ON CONFLICT ({})").format(keys) if self.target.keys else sql.SQL("ON CONFLICT")
        changed = [column.name for column in self.target.columns if column.name not in self.target.keys]
        if self.target.on_conflict == "skip" or not changed:
            return sql.SQL("{} DO NOTHING").format(on)
        new = [sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in changed]
        return sql.SQL("{} DO UPDATE SET {}").format(on, sql.SQL(", ").join(new))

    def _describe(self, line: int, error: psycopg.Error) -> str:
        """The kind of the fault and where it is. The server's own words hold the value."""
        kind = f"{type(error).__name__} ({error.sqlstate})"
        named = error.diag.constraint_name or error.diag.column_name
        if named is None and isinstance(error, psycopg.DataError):
            named = next((c.name for c in self.target.columns if not self._can_read(line, [c])), None)
        return f"met {kind}" + (f" of '{named}'" if named else "")

    def _can_read(self, line: int, columns: Sequence[Column]) -> bool:
        query = sql.SQL("{} WHERE line = %(line)s").format(self.form.read(self.table, columns))
        try:
            with self.db.transaction():
                self.db.execute(query, {"line": line})
        except psycopg.DataError:
            return False
        return True
