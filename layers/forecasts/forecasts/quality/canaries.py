"""Check canaries: watchpoints of our own that are known to be triggered or not, to notice when the platform errs.

A canary's metadata is {"system_role": "canary", "expected_triggered": true or false}.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from signalbox.ledger.context import Context
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)


@dataclass(frozen=True, slots=True)
class Canary:
    """Describe a canary as it is now."""

    id: UUID
    organization_id: UUID
    expected: Any  # a bool, if its metadata is as it should be
    is_triggered: bool

    @property
    def readable(self) -> bool:
        return isinstance(self.expected, bool)

    @property
    def mismatched(self) -> bool:
        return self.readable and self.expected is not self.is_triggered


def check_canaries(context: Context) -> dict[str, int]:
    """Count canaries and those that are wrong, with a metric for each wrong one and one audit record a slot."""
    rows = context.db.execute(SQL["list_canaries"], {"now": context.now}).fetchall()
    canaries = [Canary(*row) for row in rows]
    mismatched = [canary for canary in canaries if canary.mismatched]
    unreadable = [canary for canary in canaries if not canary.readable]
    for canary in mismatched:
        _note(context, canary)
    for canary in unreadable:
        context.metrics.count("CanaryUnreadable")
        context.log.warning("canary.misread", extra={"watchpoint_id": str(canary.id), "field": "expected_triggered"})
    return {"canaries": len(canaries), "mismatched": len(mismatched), "unreadable": len(unreadable)}


def _note(context: Context, canary: Canary) -> None:
    detail = {"slot": context.slot.isoformat(), "expected": canary.expected, "triggered": canary.is_triggered}
    values = {"id": canary.id, "organization_id": canary.organization_id, "detail": Jsonb(detail), "now": context.now}
    context.db.execute(SQL["note_mismatch"], values)
    context.metrics.count("CanaryMismatch")
    context.log.warning("canary.mismatched", extra={"watchpoint_id": str(canary.id), **detail})
