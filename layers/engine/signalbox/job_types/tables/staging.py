"""Bring records into a table: by COPY into a staging table of this transaction, from there in one INSERT.

Where that INSERT fails, values that their columns do not take are found in one pass (PostgreSQL 16 and later). Other
faults are narrowed down to their rows in the server, each try in a savepoint. So any fault of a row (a value, a
constraint, a trigger) is found without knowing it beforehand, and costs no round trip. The staging table is never
committed. It is not a temporary table, because those make a proxy pin the session.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import psycopg
from psycopg import errors, sql

from signalbox.job_types.tables.allowed_table import Table
from signalbox.job_types.tables.copy_rows import LINE, Column, Form
from signalbox.packs.outcome import Permanent
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
BUFFER = 64 << 10
CHECKS_VALUES_SINCE = 160000  # the server's version that has pg_input_is_valid
SHOWN = 100  # bad rows that a job's result lists, and
NAMED = 10  # that its error lists
# Faults that a row's own content can cause.
ROW_FAULTS = (
    psycopg.DataError,
    psycopg.IntegrityError,
    errors.RaiseException,
    errors.ProgramLimitExceeded,
    errors.StatementTooComplex,
)
_DATA_FAULTS = "22"  # the class of their SQLSTATEs
OnConflict = Literal["fail", "skip", "update"]


@dataclass(slots=True)
class BadRows:
    """Count and list the rows that were left out, and limit their number. It never holds their content."""

    most: int
    count: int = 0
    shown: list[dict[str, Any]] = field(default_factory=list)

    @property
    def room(self) -> int:
        """Return how many more rows may be listed."""
        return SHOWN - len(self.shown)

    def add(self, line: int, fault: str) -> None:
        if self.room:
            self.shown.append({"line": line, "fault": fault})
        self.add_unnamed(1)

    def add_unnamed(self, count: int) -> None:
        self.count += count
        if self.count > self.most:
            named = "; ".join(f"line {row['line']} {row['fault']}" for row in self.shown[-NAMED:])
            raise Permanent(
                f"{self.count} bad rows, and max_bad_rows is {self.most}: {named}; nothing of this chunk was kept, and "
                "earlier chunks were: start again with on_conflict skip or update, or remove their rows first"
            )


@dataclass(frozen=True, slots=True)
class ImportTarget:
    """Say where rows go, and what happens to a row that is there already."""

    table: Table
    columns: tuple[Column, ...]
    on_conflict: OnConflict
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Staging:
    """Own the staging table inside the caller's transaction."""

    db: Connection
    table: sql.Identifier
    form: Form
    target: ImportTarget
    bad: BadRows

    @staticmethod
    def create(db: Connection, job_id: str, form: Form, target: ImportTarget, bad: BadRows) -> Staging:
        table = sql.Identifier("signalbox_staging", f"import_{job_id.replace('-', '')}")
        columns = [sql.SQL("{} text").format(sql.Identifier(name)) for name in form.staged]
        create = sql.SQL("CREATE UNLOGGED TABLE {} (line bigint, {})")
        db.execute(create.format(table, sql.SQL(", ").join(columns)))
        # A deferred constraint would fail the whole chunk at its end, and name no row.
        db.execute("SET CONSTRAINTS ALL IMMEDIATE")
        return Staging(db, table, form, target, bad)

    def copy(self, records: Iterable[tuple[int, bytes]]) -> None:
        """Stage the records that COPY takes; the rest are bad rows."""
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
        """Insert the rows of these lines, and return how many were written."""
        try:
            with self.db.transaction():
                statement = self._statement(sql.Literal(first), sql.Literal(end))
                return self.db.execute(statement).rowcount
        except ROW_FAULTS:
            return self._insert_the_good(first, end)
        except errors.InvalidColumnReference:
            keys = ", ".join(self.target.keys)
            raise Permanent(
                f"{self.target.table.schema}.{self.target.table.name} has no unique index over ({keys}): "
                "on_conflict needs one over its keys"
            ) from None

    def drop(self) -> None:
        self.db.execute(sql.SQL("DROP TABLE {}").format(self.table))

    def _insert_the_good(self, first: int, end: int) -> int:
        self._run("index")
        self._run("analyze")
        if self.db.info.server_version >= CHECKS_VALUES_SINCE:
            with suppress(*ROW_FAULTS), self.db.transaction():  # a type whose input raises all the same
                self._leave_bad_values_out()
        return self._search(first, end)

    def _leave_bad_values_out(self) -> None:
        values = self.form.texts(self.target.columns)
        tests = [
            sql.SQL("pg_input_is_valid({}, {}) IS FALSE").format(sql.Identifier(text), sql.Literal(type_))
            for _, text, type_ in values
        ]
        listed = [
            sql.SQL("({}, {}::text, {}, {})").format(place, name, sql.Identifier(text), sql.Literal(type_))
            for place, (name, text, type_) in enumerate(values)
        ]
        is_bad = sql.SQL(" OR ").join(tests)
        found = self._run("find_bad_values", is_bad=is_bad, most=self.bad.room, values=sql.SQL(", ").join(listed))
        bad = [(line, _fault(state, name)) for line, state, name in found.fetchall()]
        count = self._run("drop_bad_values", is_bad=is_bad).rowcount
        for line, fault in bad:
            self.bad.add(line, fault)
        self.bad.add_unnamed(count - len(bad))

    def _search(self, first: int, end: int) -> int:
        """Write the rows that the server takes, and note the others."""
        bounds = sql.SQL("search.place"), sql.SQL("search.upto")
        body = sql.SQL(SQL["body"]).format(insert=self._statement(*bounds)).as_string(self.db)
        most, shown = self.bad.most - self.bad.count, self.bad.room
        self._run("create_search", body=body)
        found = self._run("search", first=first, finish=end, most=most, shown=shown).fetchone()
        assert found is not None  # noqa: S101 - the function answers exactly one row
        written, bad, faults = found
        self._run("drop_search")
        for line, state, named in faults:
            self.bad.add(line, _fault(state, named or self._unreadable(line, state)))
        self.bad.add_unnamed(bad - len(faults))
        return int(written)

    def _run(self, query: str, **parts: Any) -> psycopg.Cursor[Any]:
        statement = sql.SQL(SQL[query]).format(table=self.table, function=self.table, **parts)
        return self.db.execute(statement)

    def _statement(self, first: sql.Composable, end: sql.Composable) -> sql.Composed:
        """Return the INSERT of the lines from `first` up to `end`."""
        names = [sql.Identifier(column.name) for column in self.target.columns]
        insert = sql.SQL("INSERT INTO {} ({}) {} {}")
        listed = sql.SQL(", ").join(names)
        return insert.format(self.target.table.identifier, listed, self._rows(listed, first, end), self._on_conflict())

    def _rows(self, listed: sql.Composed, first: sql.Composable, end: sql.Composable) -> sql.Composed:
        source = self.form.read(self.table, self.target.columns)
        given = sql.SQL("({} WHERE staged.line >= {} AND staged.line < {}) AS given").format(source, first, end)
        if self.target.on_conflict == "fail":
            return sql.SQL("SELECT {} FROM {}").format(listed, given)  # a sort would take as long as all the rest
        if self.target.on_conflict == "skip":
            return sql.SQL("SELECT {} FROM {} ORDER BY {}").format(listed, given, LINE)
        # One statement can't update a row twice.
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

    def _unreadable(self, line: int, state: str) -> str | None:
        """Return the first column that does not take its value."""
        if not state.startswith(_DATA_FAULTS):
            return None
        return next((column.name for column in self.target.columns if not self._can_read(line, [column])), None)

    def _can_read(self, line: int, columns: Sequence[Column]) -> bool:
        query = sql.SQL("{} WHERE staged.line = {}").format(self.form.read(self.table, columns), line)
        try:
            with self.db.transaction():
                self.db.execute(query)
        except psycopg.DataError:
            return False
        return True


def _fault(state: str, named: str | None) -> str:
    """Return the kind of a fault and the column or constraint. The server's own words hold the value."""
    try:
        kind = f"{errors.lookup(state).__name__} ({state})"
    except KeyError:  # a trigger may raise any
        kind = state
    return f"met {kind}" + (f" of '{named}'" if named else "")
