"""Delete rows once they are old enough: a retention says which, and a task deletes them.

Rows that others have locked are left for the next run. So no run waits for a lock, and two runs share the work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from signalbox.batches.drain import drain
from signalbox.ledger.context import Context, Done
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
# Some twenty thousand rows of the usual size, which take some 20 ms; of the smallest, five times as many.
PAGES = 500


@dataclass(frozen=True)
class Retention:
    """Say which rows of one table are deleted, and how."""

    table: str  # with its schema
    age: str  # the column that an index is on
    only: LiteralString = "true"  # which rows of that age
    batch: int = 1000
    # In a large table many rows may be due at once. Found by the index, each row would cost a visit to a page and a
    # lock. Read through, a few hundred pages a statement, the table costs as much as one large DELETE, and holds its
    # locks for a hundredth of the time. Not for a table whose deletes cascade to others.
    by_pages: bool = False

    def delete(self, context: Context, before: datetime) -> Done:
        """Delete the rows that are older than `before`. Items are the rows deleted."""
        values = {"before": before, "batch": self.batch}
        return self._delete_by_pages(context, values) if self.by_pages else self._delete_by_index(context, values)

    def query(self, name: str) -> sql.Composed:
        """Return a statement about this table."""
        return self._queries[name]

    def _delete_by_index(self, context: Context, values: Mapping[str, Any]) -> Done:
        """Delete in batches, each from where the last ended: deleted rows stay in the index until a vacuum."""
        after = "-infinity"

        def step() -> int:
            nonlocal after
            row = context.db.execute(self.query("delete_by_index"), {**values, "after": after}).fetchone()
            deleted, reached = row or (0, None)
            after = reached or after
            return int(deleted)

        return drain(context.budget, step, size=self.batch)

    def _delete_by_pages(self, context: Context, values: Mapping[str, Any]) -> Done:
        """Delete a few rows in one statement by their index. Where there are more, read through the table."""
        if context.budget.spent:
            return Done(more=True)
        row = context.db.execute(self.query("delete_by_index"), {**values, "after": "-infinity"}).fetchone()
        items = int(row[0]) if row else 0
        if items < self.batch:
            return Done(items)
        row = context.db.execute(self.query("count_pages")).fetchone()
        # Later pages hold later rows.
        for page in range(0, int(row[0] if row else 0), PAGES):
            if context.budget.spent:
                return Done(items, more=True)
            items += self._delete_page(context, {**values, "first": f"({page},0)", "end": f"({page + PAGES},0)"})
        return Done(items)

    def _delete_page(self, context: Context, values: Mapping[str, Any]) -> int:
        try:
            with context.db.transaction():
                context.db.execute(SQL["limit_waits"])
                return context.db.execute(self.query("delete_in_pages"), values).rowcount
        except psycopg.errors.LockNotAvailable:
            return context.db.execute(self.query("delete_unlocked_in_pages"), values).rowcount

    @cached_property
    def _queries(self) -> dict[str, sql.Composed]:
        names = {
            "table": sql.Identifier(*self.table.split(".")),
            "age": sql.Identifier(self.age),
            "only": sql.SQL(self.only),
            "name": sql.Literal(self.table),
        }
        return {name: sql.SQL(text).format(**names) for name, text in SQL.items()}
