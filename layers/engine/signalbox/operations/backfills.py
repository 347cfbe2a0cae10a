"""Backfills, as an operator orders, watches and stops them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from signalbox.budget import Budget
from signalbox.invocation import Invocation, Tools
from signalbox.ledger import backfill
from signalbox.ledger.backfill import Backfill, Order
from signalbox.ledger.backfill_driver import advance
from signalbox.ledger.run import check_enabled, check_params
from signalbox.packs.payload import Instant, Payload
from signalbox.postgres.json_rows import as_json


class CreateBackfill(Payload):
    """What to run again, how fast, and why."""

    task: str
    first: Instant = Field(alias="from")
    last: Instant = Field(alias="to")
    rate_per_minute: int = Field(60, ge=1, le=600)
    params: dict[str, Any] = Field(default_factory=dict)
    force: bool = False
    dry_run: bool = False
    requested_by: str | None = Field(None, max_length=200)
    reason: str | None = Field(None, max_length=1000)


class ListBackfills(Payload):
    status: Literal["running", "paused", "cancelled", "completed"] | None = None
    limit: int = Field(50, ge=1, le=1000)


class ShowBackfill(Payload):
    id: str


class _Step(Payload):
    id: str
    by: str | None = Field(None, max_length=200)
    reason: str | None = Field(None, max_length=1000)


class PauseBackfill(_Step):
    """The slots at work finish; no further one is started."""


class ResumeBackfill(_Step):
    """Goes on with a paused or completed one, and tries its failed slots again."""


class CancelBackfill(_Step):
    """For good."""


def create_backfill(tools: Tools, params: CreateBackfill, invocation: Invocation) -> dict[str, Any]:
    """Writes the plan and starts its first slots; a dry run answers what the plan would be."""
    order, connection = _order(tools, params), tools.database.connection()
    if params.dry_run:
        return {"dry_run": backfill.preview(connection, order, invocation.clock)}
    created = backfill.create(connection, order, invocation.clock)
    _advance(tools, invocation)
    return _answer(backfill.find(connection, created.id))


def list_backfills(tools: Tools, params: ListBackfills, _: Invocation) -> dict[str, Any]:
    found = backfill.list_newest(tools.database.connection(), params.status, params.limit)
    return {"backfills": [_shown(backfill) for backfill in found]}


def show_backfill(tools: Tools, params: ShowBackfill, _: Invocation) -> dict[str, Any]:
    return _answer(backfill.find(tools.database.connection(), params.id))


def pause_backfill(tools: Tools, params: PauseBackfill, _: Invocation) -> dict[str, Any]:
    return _answer(backfill.pause(tools.database.connection(), params.id, params.by, params.reason))


def resume_backfill(tools: Tools, params: ResumeBackfill, invocation: Invocation) -> dict[str, Any]:
    connection = tools.database.connection()
    backfill.resume(connection, params.id, params.by, params.reason)
    _advance(tools, invocation)
    return _answer(backfill.find(connection, params.id))


def cancel_backfill(tools: Tools, params: CancelBackfill, _: Invocation) -> dict[str, Any]:
    return _answer(backfill.cancel(tools.database.connection(), params.id, params.by, params.reason))


def _order(tools: Tools, params: CreateBackfill) -> Order:
    task = tools.registry.find(params.task)
    check_enabled(tools, task.name)
    check_params(task, params.params)
    return Order(
        task=task,
        first=params.first,
        last=params.last,
        rate_per_minute=params.rate_per_minute,
        params=params.params,
        force=params.force,
        requested_by=params.requested_by,
        reason=params.reason,
    )


def _advance(tools: Tools, invocation: Invocation) -> None:
    """The first slots start at once; the rest follow each minute."""
    budget = Budget(invocation.ends_at - tools.settings.budget_margin_seconds)
    advance(tools.database.connection(), tools.handoff, tools.enabled(), budget, tools.log)


def _answer(backfill: Backfill) -> dict[str, Any]:
    return {"backfill": _shown(backfill)}


def _shown(backfill: Backfill) -> dict[str, Any]:
    shown = as_json({name: getattr(backfill, name) for name in Backfill.__slots__})
    return {_NAMES.get(name, name): value for name, value in shown.items()}


_NAMES = {"range_from": "from", "range_to": "to"}
