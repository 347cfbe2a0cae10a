"""Find a table that jobs may read or fill, by the stack's own list, and describe its columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal

from psycopg import sql
from pydantic import Field

from signalbox.budget import Budget
from signalbox.packs.outcome import Permanent
from signalbox.packs.suggest import nearest
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)

TableName = Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]{0,62}\.[a-z_][a-z0-9_]{0,62}$")]
# A % would be read as the beginning of a parameter.
ColumnName = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[^%\x00]+$")]
_KINDS = {"import": ["r", "p"], "export": ["r", "p", "v", "m", "f"]}


@dataclass(frozen=True, slots=True)
class Table:
    """Describe a table: schema and name, its columns' types by name, and its primary key."""

    schema: str
    name: str
    types: dict[str, str]
    key: tuple[str, ...]

    @property
    def identifier(self) -> sql.Identifier:
        return sql.Identifier(self.schema, self.name)

    def type_of(self, column: str) -> sql.SQL:
        # format_type() has quoted it where needed.
        return sql.SQL(self.types[column])

    def check_columns(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.types:
                raise Permanent(f"table {self.schema}.{self.name} has no column '{name}'{nearest(name, self.types)}")


def find_table(db: Connection, table: str, allowed: Iterable[str], use: Literal["import", "export"]) -> Table:
    """Return the table. Raise Permanent if it does not exist, or the stack does not list it."""
    schema, _, name = table.partition(".")
    if not {table, f"{schema}.*"} & set(allowed):
        raise Permanent(
            f"table {table} is not open to {use}s in this stack: SIGNALBOX_FILE_TRANSFERS lists those that are"
        )
    values = {"schema": schema, "name": name, "kinds": _KINDS[use]}
    if use == "export" and (found := db.execute(SQL["find_private"], values).fetchone()) is not None:
        raise Permanent(f"table {table} is exported by no stack: its schema is private, {found[0]}")
    rows = db.execute(SQL["read_columns"], values).fetchall()
    if not rows:
        raise Permanent(f"there is no table {table} in the database, or this role can't see it")
    key = sorted((place, column) for column, _, place in rows if place >= 0)
    return Table(schema, name, {column: kind for column, kind, _ in rows}, tuple(column for _, column in key))


def prepare(db: Connection, budget: Budget) -> None:
    """Set the transaction's formats and time limit. Call it first in a transaction."""
    db.execute(SQL["prepare"], {"milliseconds": str(max(1000, round(budget.seconds_left * 1000)))})
