"""List, show and cancel bulk actions for an operator."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from signalbox.invocation import Invocation, Resources
from signalbox.operate import bulk_actions
from signalbox.operate.audit import Actor
from signalbox.operate.listing import MOST_COUNTED
from signalbox.operate.short_ids import IdParams
from signalbox.packs.payload import Payload
from signalbox.tasks.advance_bulk_actions import count_left


class ListBulkActions(Payload):
    tenant: str | None = Field(None, description="on jobs of this tenant")
    status: Literal["running", "cancelled", "completed"] | None = Field(None, description="in this state")
    limit: int = Field(50, ge=1, le=1000)


class ShowBulkAction(IdParams):
    ID_FIELDS = (("id", "bulk_action"),)
    id: str


class CancelBulkAction(IdParams):
    """Cancel a bulk action; what it has done stays."""

    ID_FIELDS = (("id", "bulk_action"),)
    id: str
    by: str = Field("unnamed", min_length=1, max_length=200)
    reason: str | None = Field(None, max_length=1000)


def list_bulk_actions(resources: Resources, params: ListBulkActions, _: Invocation) -> dict[str, Any]:
    db = resources.database.connection()
    found = bulk_actions.list_newest(db, tenant=params.tenant, status=params.status, limit=params.limit)
    return {"bulk_actions": [one.shown for one in found]}


def show_bulk_action(resources: Resources, params: ShowBulkAction, _: Invocation) -> dict[str, Any]:
    """Return it with how many it has not come to; with `more` they are more than 10,000."""
    db = resources.database.connection()
    found = bulk_actions.find(db, params.id)
    left = count_left(db, found) if found.status == "running" else 0
    return {"bulk_action": {**found.shown, "left": min(left, MOST_COUNTED), "more": left > MOST_COUNTED}}


def cancel_bulk_action(resources: Resources, params: CancelBulkAction, _: Invocation) -> dict[str, Any]:
    db = resources.database.connection()
    return {"bulk_action": bulk_actions.cancel(db, params.id, Actor(params.by, params.reason)).shown}
