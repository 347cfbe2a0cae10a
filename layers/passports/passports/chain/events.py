"""Append events to the chain of what they happened to, in the transaction of what has happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from psycopg.types.json import Jsonb

from passports.encoding.canonical import canonical, instant, sha256
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)


@dataclass(frozen=True, slots=True)
class Event:
    """Describe one event as it is hashed."""

    id: UUID | str
    tenant_id: UUID | str
    aggregate_type: str
    aggregate_id: UUID | str
    seq: int
    event_type: str
    actor_id: UUID | str | None
    occurred_at: datetime
    payload: Mapping[str, Any]
    prev_hash: bytes | None

    def as_json(self) -> dict[str, Any]:
        """Return what is hashed."""
        return {
            "event_id": str(self.id),
            "tenant_id": str(self.tenant_id),
            "aggregate_type": self.aggregate_type,
            "aggregate_id": str(self.aggregate_id),
            "seq": self.seq,
            "event_type": self.event_type,
            "actor_id": None if self.actor_id is None else str(self.actor_id),
            "occurred_at": instant(self.occurred_at),
            "payload": self.payload,
            "prev_hash": None if self.prev_hash is None else self.prev_hash.hex(),
        }

    @property
    def hash(self) -> bytes:
        return sha256(canonical(self.as_json()))


def append_event(  # noqa: PLR0917
    db: Connection,
    tenant_id: UUID | str,
    aggregate_type: str,
    aggregate_id: UUID | str,
    event_type: str,
    payload: Mapping[str, Any],
) -> Event:
    """Append one event; others of the same chain wait until this transaction has ended."""
    names = {"tenant_id": tenant_id, "aggregate_type": aggregate_type, "aggregate_id": aggregate_id}
    db.execute(SQL["open"], names)
    row = db.execute(SQL["lock"], names).fetchone()
    if row is None:
        raise RuntimeError(f"the chain of {aggregate_type} {aggregate_id} has no head")
    seq, head, now = row
    event = Event(
        uuid4(), tenant_id, aggregate_type, aggregate_id, seq + 1, event_type, None, now, payload, head if seq else None
    )
    values = {
        **names,
        "id": event.id,
        "seq": event.seq,
        "event_type": event_type,
        "occurred_at": now,
        "payload": Jsonb(dict(payload)),
        "prev_hash": event.prev_hash,
        "hash": event.hash,
    }
    db.execute(SQL["append"], values)
    return event
