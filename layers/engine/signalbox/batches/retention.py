"""Rows of a table are deleted once they are old enough: a retention says which, and a task deletes what is due.

What others hold at this moment is left for the next run, so that no lock is waited for, and two runs share the work.
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
    """Of one table."""

    table: str  # with its schema
    age: str  # the column that an index is on
    only: LiteralString = "true"  # which rows of that age
    batch: int = 1000
    # Of a large table, much may be due at once. Found by the index, each row would cost a visit to a page and a lock;
    # read through, a few hundred pages a statement, the table costs what one large DELETE would, and holds its locks
    # for a hundredth of the time. Not for a table whose rows take others with them.
    by_pages: bool = False

    def delete(self, context: Context, before: datetime) -> Done:
        """Items are the rows deleted."""
        values = {"before": before, "batch": self.batch}
        return self._delete_by_pages(context, values) if self.by_pages else self._delete_by_index(context, values)

    def query(self, name: str) -> sql.Composed:
        """A statement about this table."""
        return self._queries[name]

    def _delete_by_index(self, context: Context, values: Mapping[str, Any]) -> Done:
        """Each batch begins where the last one ended: the entries of deleted rows stay in the index until it is
        vacuumed, and a batch that began at the front would walk over all of them."""
        after = "-infinity"

        def step() -> int:
            nonlocal after
            row = context.db.execute(self.query("delete_by_index"), {**values, "after": after}).fetchone()
            deleted, reached = row or (0, None)
            after = reached or after
            return int(deleted)

        return drain(context.budget, step, size=self.batch)

    def _delete_by_pages(self, context: Context, values: Mapping[str, Any]) -> Done:
        """A few rows go in one statement by their index. Where there are more, the table is read through."""
        if context.budget.spent:
            return Done(more=True)
        row = context.db.execute(self.query("delete_by_index"), {**values, "after": "-infinity"}).fetchone()
        items = int(row[0]) if row else 0
        if items < self.batch:
            return Done(items)
        row = context.db.execute(self.query("count_pages")).fetchone()
        # Pages that come later hold rows that come later.
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
