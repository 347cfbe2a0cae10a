"""Run bulk actions on jobs for the operations: select the jobs, name the actor, publish after each commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import Field

from signalbox.budget import Budget
from signalbox.invocation import Invocation, Resources
from signalbox.operate.audit import Actor
from signalbox.operate.bulk import BulkContext, BulkResult
from signalbox.operate.filters import JobFilter
from signalbox.operate.listing import preview
from signalbox.operate.redaction import refuse_sensitive
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
