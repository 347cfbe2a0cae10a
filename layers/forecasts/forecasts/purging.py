"""Deletes what is due in the order of an index, a batch a statement, without waiting for rows that others hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, LiteralString

from signalbox.context import Context, Done, drain


def purge(context: Context, delete: LiteralString, values: Mapping[str, Any], *, size: int) -> Done:
    """Items are the rows deleted. `delete` answers how many it deleted, and where in the index it stopped.

    The next batch begins there: the entries of rows deleted before stay in the index until it is vacuumed, and a batch
    that began at the front would walk over all of them.
    """
    after = "-infinity"

    def step() -> int:
        nonlocal after
        row = context.db.execute(delete, {**values, "after": after, "batch": size}).fetchone()
        deleted, reached = row or (0, None)
        after = reached or after
        return int(deleted)

    return drain(context.budget, step, size=size)
