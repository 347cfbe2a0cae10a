"""Keeps a cleanup from emptying a table: no run deletes more than a share of the rows unless an operator says so.

What a cleanup deletes is gone. A clock that is wrong, a retention mistyped, a bug that dates rows back: each would have
it delete far more than on any other night, so before the first DELETE the rows that would go are counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, LiteralString

from pydantic import Field

from forecasts.errors import DeletionRefused
from forecasts.settings import settings
from signalbox.context import Context
from signalbox.payload import Payload
from signalbox.queries import load_queries

SQL = load_queries(__file__)


class CleanupParams(Payload):
    """What cleanups that look before they delete take."""

    beyond_safety_share: bool = Field(False, description="delete even if that is a large share of the table")


def require_safe(
    context: Context, table: str, weigh: LiteralString, values: Mapping[str, Any], most: int | None = None
) -> None:
    """Raises where this run, which deletes `most` rows, would delete too large a share of the table.

    Holds for the slot's continuations too: as the same rows leave both counts, the share only falls.
    """
    if context.params.beyond_safety_share:
        context.log.warning("safety_share.waived", extra={"table": table})
        return
    share = Decimal(str(settings().safety_share))
    row = context.db.execute(weigh, {**values, "most": most, "share": share}).fetchone()
    due, rows = row or (0, 0)
    if not is_safe(due, rows, share, settings().safety_floor):
        context.metrics.count("DeletionsRefused")
        raise DeletionRefused(
            f"{due} of the {rows} rows in {table} are due for deletion, more than the share of {share} that a run may "
            "delete; if that is right, invoke the task once with params {'beyond_safety_share': true}"
        )


def is_safe(due: int, rows: int, share: Decimal, floor: int) -> bool:
    """A few rows may always go: of a small table they are soon a large share."""
    return due <= floor or due <= share * rows


def allowance(context: Context, most: int) -> int:
    """What is left of the most that a slot may delete: its earlier links have had their part of it."""
    values = {"task": context.task, "slot": context.slot}
    row = context.db.execute(SQL["count_handed_over"], values).fetchone()
    return max(0, most - int(row[0] if row else 0))
