"""Keep a cleanup from emptying a table: no run deletes more than a share of the rows unless an operator allows it.

Deleted rows are gone. A wrong clock, a mistyped retention or a bug that backdates rows would delete far more than on
any other night. So the rows that would go are counted before the first DELETE.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from pydantic import Field

from signalbox.batches.retention import Retention
from signalbox.errors import DeletionRefused
from signalbox.ledger.context import Context
from signalbox.packs.payload import Payload
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)


class CleanupParams(Payload):
    """Accept the params of cleanups that count before they delete."""

    beyond_safety_share: bool = Field(False, description="delete even if that is a large share of the table")


@dataclass(frozen=True, slots=True)
class SafetyShare:
    """Limit a delete to a share of a table's rows. `floor` rows may always go: they are soon a large share of few."""

    share: float
    floor: int

    def require(self, context: Context, retention: Retention, before: datetime, most: int | None = None) -> None:
        """Raise where this run, which deletes `most` rows, would delete too large a share of the table.

        This also holds for the slot's continuations: as the same rows leave both counts, the share only falls.
        """
        if context.params.beyond_safety_share:
            context.log.warning("safety_share.waived", extra={"table": retention.table})
            return
        share = Decimal(str(self.share))
        values = {"before": before, "most": most, "share": share}
        due, rows = context.db.execute(retention.query("weigh"), values).fetchone() or (0, 0)
        if not self.allows(due, rows):
            context.metrics.count("DeletionsRefused")
            raise DeletionRefused(
                f"{due} of the {rows} rows in {retention.table} are due for deletion, more than the share of {share} "
                "that a run may delete; if this is intended, invoke the task once with params "
                "{'beyond_safety_share': true}"
            )

    def allows(self, due: int, rows: int) -> bool:
        """Return whether this many of the table's rows may go."""
        return due <= self.floor or due <= Decimal(str(self.share)) * rows


def allowance(context: Context, most: int) -> int:
    """Return how many rows the slot may still delete, less those that its earlier runs have deleted."""
    values = {"task": context.task, "slot": context.slot}
    row = context.db.execute(SQL["count_handed_over"], values).fetchone()
    return max(0, most - int(row[0] if row else 0))
