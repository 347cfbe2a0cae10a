"""Request, watch and stop backfills for an operator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from pydantic import Field

from signalbox.budget import Budget
from signalbox.invocation import Invocation, Resources
from signalbox.ledger import backfill
from signalbox.ledger.backfill import MOST_SLOTS, Backfill, BackfillRequest
from signalbox.ledger.backfill_driver import advance
from signalbox.ledger.run import check_enabled, check_params
from signalbox.operate import audit
from signalbox.operate.audit import Actor
from signalbox.operate.short_ids import IdParams
from signalbox.packs.payload import Instant, Payload
from signalbox.postgres.connection import Connection
from signalbox.postgres.json_rows import json_row


class CreateBackfill(Payload):
    """Say what to run again, how fast, and why."""

    task: str
    first: Instant = Field(alias="from")
    last: Instant = Field(alias="to")
    rate_per_minute: int = Field(60, ge=1, le=600)
    params: dict[str, Any] = Field(default_factory=dict)
    force: bool = False
    only: Literal["failed", "missing"] | None = None
    newest_first: bool = False
    stop_after_failures: int | None = Field(None, ge=1, le=MOST_SLOTS)
    dry_run: bool = False
    requested_by: str | None = Field(None, max_length=200)
    reason: str | None = Field(None, max_length=1000)


class ListBackfills(Payload):
    status: Literal["running", "paused", "cancelled", "completed"] | None = None
    limit: int = Field(50, ge=1, le=1000)


class ShowBackfill(IdParams):
    ID_FIELDS = (("id", "backfill"),)
    id: str


class _BackfillParams(IdParams):
    ID_FIELDS = (("id", "backfill"),)
    id: str
    by: str | None = Field(None, max_length=200)
    reason: str | None = Field(None, max_length=1000)


class PauseBackfill(_BackfillParams):
    """Pause a backfill: running slots finish, and no further one is started."""


class ResumeBackfill(_BackfillParams):
    """Continue a paused or completed backfill, and try its failed slots again."""


class ChangeBackfill(_BackfillParams):
    """Set the rate while it runs or is paused."""

    rate_per_minute: int = Field(ge=1, le=600)


class CancelBackfill(_BackfillParams):
    """Cancel a backfill, which is final."""


def create_backfill(resources: Resources, params: CreateBackfill, invocation: Invocation) -> dict[str, Any]:
    """Store the plan and start its first slots; a dry run returns the plan."""
    order, connection = _order(resources, params), resources.database.connection()
    if params.dry_run:
        return {"dry_run": backfill.preview(connection, order, invocation.clock)}
    with connection.transaction():
        created = backfill.create(connection, order, invocation.clock)
        by = Actor(params.requested_by or "unnamed", params.reason)
        audit.note(connection, by, "backfill.create", kind="backfill", id_=created.id, detail={"task": created.task})
    _advance(resources, invocation)
    return _answer(backfill.find(connection, created.id))


def list_backfills(resources: Resources, params: ListBackfills, _: Invocation) -> dict[str, Any]:
    found = backfill.list_newest(resources.database.connection(), params.status, params.limit)
    return {"backfills": [_shown(backfill) for backfill in found]}


def show_backfill(resources: Resources, params: ShowBackfill, _: Invocation) -> dict[str, Any]:
    return _answer(backfill.find(resources.database.connection(), params.id))


def pause_backfill(resources: Resources, params: PauseBackfill, _: Invocation) -> dict[str, Any]:
    with _noted(resources, params, "backfill.pause") as db:
        return _answer(backfill.pause(db, params.id, params.by, params.reason))


def resume_backfill(resources: Resources, params: ResumeBackfill, invocation: Invocation) -> dict[str, Any]:
    with _noted(resources, params, "backfill.resume") as db:
        backfill.resume(db, params.id, params.by, params.reason)
    _advance(resources, invocation)
    return _answer(backfill.find(db, params.id))


def change_backfill(resources: Resources, params: ChangeBackfill, _: Invocation) -> dict[str, Any]:
    with _noted(resources, params, "backfill.change", rate_per_minute=params.rate_per_minute) as db:
        return _answer(backfill.change(db, params.id, params.rate_per_minute, params.by, params.reason))


def cancel_backfill(resources: Resources, params: CancelBackfill, _: Invocation) -> dict[str, Any]:
    with _noted(resources, params, "backfill.cancel") as db:
        return _answer(backfill.cancel(db, params.id, params.by, params.reason))


@contextmanager
def _noted(resources: Resources, params: _BackfillParams, action: str, **detail: Any) -> Iterator[Connection]:
    """Note the action in the audit log, in the transaction that carries it out."""
    db = resources.database.connection()
    with db.transaction():
        yield db
        by = Actor(params.by or "unnamed", params.reason)
        audit.note(db, by, action, kind="backfill", id_=params.id, detail=detail)


def _order(resources: Resources, params: CreateBackfill) -> BackfillRequest:
    task = resources.tasks.find(params.task)
    check_enabled(resources, task.name)
    check_params(task, params.params)
    return BackfillRequest(
        task=task,
        first=params.first,
        last=params.last,
        rate_per_minute=params.rate_per_minute,
        params=params.params,
        force=params.force,
        requested_by=params.requested_by,
        reason=params.reason,
        only=params.only,
        newest_first=params.newest_first,
        most_failures=params.stop_after_failures,
    )


def _advance(resources: Resources, invocation: Invocation) -> None:
    """Start the first slots at once; the rest follow each minute."""
    budget = Budget(invocation.ends_at - resources.settings.budget_margin_seconds)
    advance(resources.database.connection(), resources.invoker, resources.enabled(), budget, resources.log)


def _answer(backfill: Backfill) -> dict[str, Any]:
    return {"backfill": _shown(backfill)}


def _shown(backfill: Backfill) -> dict[str, Any]:
    shown = json_row({name: getattr(backfill, name) for name in Backfill.__slots__})
    return {_NAMES.get(name, name): value for name, value in shown.items()}


_NAMES = {"range_from": "from", "range_to": "to"}
