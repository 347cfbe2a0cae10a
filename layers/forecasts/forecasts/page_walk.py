"""Deletes what is due from a table of which much may be due at once: page by page, in the order in which it lies.

A few rows go in one statement by their index. Where there are more than that, each of them found by the index would
cost a visit to a page, a lock and a search for the row it stands for; reading the table through, a few hundred pages a
statement, costs what the one large DELETE would, and holds its locks for a hundredth of the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, LiteralString

import psycopg

from signalbox.context import Context, Done

BATCH = 5000
# Some twenty thousand rows of the usual size, which take some 20 ms; of the smallest, five times as many.
PAGES = 500


def purge_pages(context: Context, sql: Mapping[str, LiteralString], values: Mapping[str, Any]) -> Done:
    """Items are the rows deleted. What others hold at this moment is left for the next run."""
    if context.budget.spent:
        return Done(more=True)
    items = context.db.execute(sql["delete_oldest"], {**values, "batch": BATCH}).rowcount
    if items < BATCH:
        return Done(items)
    row = context.db.execute(sql["count_pages"]).fetchone()
    # Pages that come later hold rows that come later.
    for page in range(0, int(row[0] if row else 0), PAGES):
        if context.budget.spent:
            return Done(items, more=True)
        items += _purge(context, sql, {**values, "first": f"({page},0)", "end": f"({page + PAGES},0)"})
    return Done(items)


def _purge(context: Context, sql: Mapping[str, LiteralString], values: Mapping[str, Any]) -> int:
    try:
        with context.db.transaction():
            context.db.execute(sql["limit_waits"])
            return context.db.execute(sql["delete_in_pages"], values).rowcount
    except psycopg.errors.LockNotAvailable:
        return context.db.execute(sql["delete_unlocked_in_pages"], values).rowcount
