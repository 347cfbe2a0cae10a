"""Write the audit log: a row for each request of an operator, in the transaction that carries it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from signalbox.postgres.connection import Connection
from signalbox.postgres.json_rows import json_row
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)


@dataclass(frozen=True, slots=True)
class Actor:
    """Name who makes a request, and why."""

    name: str
    reason: str | None = None

    @property
    def detail(self) -> dict[str, str]:
        return {"reason": self.reason} if self.reason else {}


def note(
    db: Connection, by: Actor, action: str, *, kind: str, id_: str = "", detail: Mapping[str, Any] | None = None
) -> None:
    """Record one request about one thing."""
    db.execute(SQL["note"], _values(by, action, kind, detail) | {"entity_id": id_})


def note_each(db: Connection, by: Actor, action: str, *, kind: str, ids: Sequence[str]) -> None:
    """Record one request about many things that were named one by one."""
    if ids:
        db.execute(SQL["note_each"], _values(by, action, kind, None) | {"ids": list(ids)})


def list_newest(db: Connection, kind: str, id_: str) -> list[dict[str, Any]]:
    """Return what was done to a thing, newest first."""
    with db.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(SQL["list_newest"], {"entity_type": kind, "entity_id": id_}).fetchall()
    return [json_row(row) for row in rows]


def _values(by: Actor, action: str, kind: str, detail: Any) -> dict[str, Any]:
    known = {**by.detail, **(detail or {})}
    return {"actor": by.name, "action": action, "entity_type": kind, "detail": Jsonb(known)}
