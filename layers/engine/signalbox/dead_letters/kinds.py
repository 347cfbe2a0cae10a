"""List kinds of failure, and ignore a kind's next failures.

A kind is what dead letters with one fingerprint have in common. The transaction that writes a dead letter also looks
whether its kind is ignored (`signalbox.ignore_failures`), so that each failure counts once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.rows import dict_row

from signalbox.errors import DeadLetterUnknown
from signalbox.operate.filters import DeadLetterFilter
from signalbox.postgres.connection import Connection
from signalbox.postgres.json_rows import json_row
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """Say which failures of a kind are ignored: those until a time, or the next so many. Exactly one is given."""

    until: datetime | None = None
    next: int | None = None


def list_kinds(db: Connection, selection: DeadLetterFilter, now: datetime, limit: int = 50) -> dict[str, Any]:
    """Return the failures by fingerprint, the most recent first, with counts; `more` is how many are left out."""
    with db.cursor(row_factory=dict_row) as cursor:
        kinds = cursor.execute(SQL["list"], {**selection.values, "limit": limit, "now": now}).fetchall()
    total = [kind.pop("all_kinds") for kind in kinds]
    return {"kinds": [json_row(kind) for kind in kinds], "more": total[0] - len(kinds) if kinds else 0}


def decide_kind(db: Connection, fingerprint: str, rule: IgnoreRule | None, *, by: str, reason: str | None) -> None:
    """Ignore the kind's failures by this rule from now on, or by none. The caller's transaction locks the kind."""
    values = {"fingerprint": fingerprint, "by": by, "reason": reason}
    if rule is None:
        db.execute(SQL["stop_ignoring"], values)
        return
    if db.execute(SQL["has_letter"], values).fetchone() == (False,):
        raise DeadLetterUnknown(
            f"no dead letter has the fingerprint {fingerprint[:80]}; `signalbox dead-letters --kinds` lists the kinds"
        )
    db.execute(SQL["ignore"], {**values, "until": rule.until, "next": rule.next})
