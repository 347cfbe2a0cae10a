"""Run bulk actions on jobs for the operations, and list, show and cancel those that are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from pydantic import Field

from signalbox.budget import Budget
from signalbox.invocation import Invocation, Resources
from signalbox.operate import bulk_actions
from signalbox.operate.audit import Actor
from signalbox.operate.bulk import BulkContext, BulkResult
from signalbox.operate.filters import JobFilter
from signalbox.operate.listing import MOST_COUNTED, preview
from signalbox.operate.redaction import refuse_sensitive
from signalbox.operate.short_ids import IdParams
from signalbox.packs.payload import Payload
from signalbox.packs.registries import JobTypeRegistry
from signalbox.postgres.connection import Connection

BulkFunction = Callable[[Connection, JobTypeRegistry, JobFilter, BulkContext], BulkResult]


class BulkJobParams(JobFilter):
    """Select the jobs of a request, by ids or by a filter."""

    by: str = Field(default="unnamed", min_length=1, max_length=200)
    reason: str | None = Field(default=None, max_length=1000)
    dry_run: bool = False

    @property
    def actor(self) -> Actor:
        return Actor(self.by, self.reason)


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


def run_bulk_action(
    resources: Resources, params: BulkJobParams, invocation: Invocation, action: BulkFunction
) -> dict[str, Any]:
    """Run the action, or preview it; jobs that have become due are sent once all is committed."""
    db, job_types = resources.database.connection(), resources.job_types
    refuse_sensitive(job_types, params)
    if params.dry_run:
        return {"dry_run": preview_of(resources, params)}
    done = action(db, job_types, params, bulk_context(resources, params.actor, invocation))
    return answer_of(resources, done)


def preview_of(resources: Resources, job_filter: JobFilter) -> dict[str, Any]:
    seen = preview(resources.database.connection(), resources.job_types, job_filter)
    return {"as_of": seen.as_of, "counts": seen.counts, "more": seen.more, "sample": seen.sample}


def bulk_context(resources: Resources, by: Actor, invocation: Invocation) -> BulkContext:
    budget = Budget(invocation.ends_at - resources.settings.budget_margin_seconds)
    return BulkContext(
        by, budget, lambda ids: resources.publisher.publish_status_of(resources.database.connection(), ids)
    )


def answer_of(resources: Resources, done: BulkResult) -> dict[str, Any]:
    sent = resources.publisher.send_due(resources.database.connection(), done.due)
    return {**done.counts, "sent": sent, "more": done.more} | ({"bulk_action": done.id} if done.id else {})


def list_bulk_actions(resources: Resources, params: ListBulkActions, _: Invocation) -> dict[str, Any]:
    db = resources.database.connection()
    found = bulk_actions.list_newest(db, tenant=params.tenant, status=params.status, limit=params.limit)
    return {"bulk_actions": [one.shown for one in found]}


def show_bulk_action(resources: Resources, params: ShowBulkAction, _: Invocation) -> dict[str, Any]:
    """Return it with how many it has not come to; with `more` they are more than 10,000."""
    from signalbox.tasks.advance_bulk_actions import count_left  # the other operations need none of it

    db = resources.database.connection()
    found = bulk_actions.find(db, params.id)
    left = count_left(db, found) if found.status == "running" else 0
    return {"bulk_action": {**found.shown, "left": min(left, MOST_COUNTED), "more": left > MOST_COUNTED}}


def cancel_bulk_action(resources: Resources, params: CancelBulkAction, _: Invocation) -> dict[str, Any]:
    db = resources.database.connection()
    return {"bulk_action": bulk_actions.cancel(db, params.id, Actor(params.by, params.reason)).shown}
