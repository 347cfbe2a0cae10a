"""Keep bulk actions: what somebody asked to be done to all jobs or dead letters that a filter finds.

    create → pass → pass → completed
                  ↘ cancelled

A pass changes a batch at a time and records it here in the same transaction. An action that is cancelled stops at its
next batch, and one whose function died goes on after its last batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from signalbox.budget import Budget
from signalbox.errors import BulkActionUnknown, TransitionRefused
from signalbox.operate import audit
from signalbox.operate.audit import Actor
from signalbox.operate.filters import DeadLetterFilter, JobFilter
from signalbox.postgres.connection import Connection
from signalbox.postgres.json_rows import json_row
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
Json = dict[str, Any]
# A lease outlives its pass, which ends in time with its function.
_GRACE = timedelta(seconds=30)


class BulkActionStopped(Exception):
    """The action was cancelled in the meantime."""


@dataclass(frozen=True, slots=True)
class BulkAction:
    """Describe an action and how far it is."""

    id: str
    action: str
    selection: Json
    rate_per_minute: int | None
    next_at: datetime | None
    cursor: Json | None
    status: str
    counts: dict[str, int]
    refused: Sequence[Mapping[str, str]]
    requested_by: str
    reason: str | None
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None

    @property
    def by(self) -> Actor:
        return Actor(self.requested_by, self.reason)

    @property
    def job_filter(self) -> JobFilter:
        return JobFilter.model_validate(self.selection)

    @property
    def letter_filter(self) -> DeadLetterFilter:
        return DeadLetterFilter.model_validate(self.selection)

    @property
    def shown(self) -> Json:
        """Return what operators see: of a filter by payload, the names of the fields alone."""
        row = {name: getattr(self, name) for name in BulkAction.__slots__ if name not in ("cursor", "next_at")}
        selection = self.selection if self.action == "redrive" else self.job_filter.given
        return json_row({**row, "selection": selection})


def create(
    db: Connection,
    action: str,
    selection: JobFilter | DeadLetterFilter,
    by: Actor,
    budget: Budget,
    *,
    rate_per_minute: int | None = None,
) -> BulkAction:
    """Keep an action with its row in the audit log, and take it."""
    model = JobFilter if isinstance(selection, JobFilter) else DeadLetterFilter
    given = selection.model_dump(mode="json", exclude_none=True, include=set(model.model_fields))
    values = {"action": action, "selection": Jsonb(given), "rate": rate_per_minute, "by": by.name, "reason": by.reason}
    with db.transaction():
        [id_] = db.execute(SQL["create"], {**values, "lease": _lease(budget)}).fetchone() or ("",)
        made = find(db, id_)
        audit.note(
            db, by, f"bulk.{action}", kind="bulk_action", id_=made.id, detail={"selection": made.shown["selection"]}
        )
    return made


def find(db: Connection, id_: str) -> BulkAction:
    found = _one(db, "find", {"id": id_})
    if found is None:
        raise BulkActionUnknown(f"no bulk action has the id {id_}; `signalbox bulk-actions` lists them")
    return found


def list_newest(db: Connection, *, tenant: str | None, status: str | None, limit: int) -> list[BulkAction]:
    with db.cursor(row_factory=class_row(BulkAction)) as cursor:
        return cursor.execute(SQL["list_newest"], {"tenant": tenant, "status": status, "limit": limit}).fetchall()


def list_open(db: Connection) -> list[str]:
    """Return the actions that nobody is at work on."""
    return [id_ for (id_,) in db.execute(SQL["list_open"])]


def take(db: Connection, id_: str, budget: Budget) -> BulkAction | None:
    """Take an action for a pass, unless another one is at work on it."""
    return _one(db, "take", {"id": id_, "lease": _lease(budget)})


def record(
    db: Connection,
    id_: str,
    counts: Mapping[str, int],
    *,
    cursor: Json | None = None,
    next_at: datetime | None = None,
    refused: Sequence[Mapping[str, str]] = (),
) -> None:
    """Add what a batch did, in its transaction; raise BulkActionStopped where the action was cancelled."""
    values = {"id": id_, "counts": Jsonb(dict(counts)), "refused": Jsonb(list(refused)), "next_at": next_at}
    if db.execute(SQL["record"], {**values, "cursor": _json(cursor)}).fetchone() is None:
        raise BulkActionStopped


def leave(db: Connection, id_: str, *, cursor: Json | None, done: bool) -> None:
    """End a pass, and the action where nothing is left to do."""
    db.execute(SQL["leave"], {"id": id_, "cursor": _json(cursor), "done": done})


def cancel(db: Connection, id_: str, by: Actor) -> BulkAction:
    """Stop an action. What it has done stays."""
    with db.transaction():
        stopped = db.execute(SQL["cancel"], {"id": id_}).fetchone()
        found = find(db, id_)
        if stopped is None:
            raise TransitionRefused(f"bulk action {id_} is {found.status}: there is nothing left to cancel")
        audit.note(db, by, "bulk_action.cancel", kind="bulk_action", id_=id_)
    return found


def _one(db: Connection, query: str, values: Json) -> BulkAction | None:
    with db.cursor(row_factory=class_row(BulkAction)) as cursor:
        return cursor.execute(SQL[query], values).fetchone()


def _lease(budget: Budget) -> timedelta:
    return timedelta(seconds=budget.seconds_left) + _GRACE


def _json(value: Json | None) -> Jsonb | None:
    return None if value is None else Jsonb(value)
