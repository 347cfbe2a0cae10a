"""What the operations that give an order about jobs share: which jobs, by whom, and what follows each commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from pydantic import Field

from signalbox.budget import Budget
from signalbox.invocation import Invocation, Resources
from signalbox.operate.audit import Actor
from signalbox.operate.bulk import BulkContext, BulkResult
from signalbox.operate.filters import JobFilter
from signalbox.operate.listing import preview
from signalbox.packs.payload import Instant, Payload
from signalbox.packs.registries import JobTypeRegistry
from signalbox.postgres.connection import Connection

# Of one order by ids: more are a filter's.
MOST_NAMED = 1000
BulkFunction = Callable[[Connection, JobTypeRegistry, JobFilter, BulkContext], BulkResult]


class JobFilterParams(Payload):
    """Which jobs; all that are given must hold."""

    status: Literal["pending", "queued", "running", "completed", "failed", "cancelled", "paused"] | None = None
    job_type: str | None = None
    lane: Literal["high", "normal", "low", "heavy"] | None = None
    tenant: str | None = None
    cap_key: str | None = None
    group: str | None = None
    tag: str | None = None
    subject: str | None = None
    correlation: str | None = None
    schedule: str | None = None
    parent: str | None = None
    since: Instant | None = None
    until: Instant | None = None

    @property
    def job_filter(self) -> JobFilter:
        return JobFilter(**{name: getattr(self, name) for name in JobFilterParams.model_fields})


class BulkJobParams(JobFilterParams):
    """An order about the jobs that are named, or that a filter finds."""

    ids: list[str] | None = Field(None, min_length=1, max_length=MOST_NAMED)
    by: str = Field("unnamed", min_length=1, max_length=200)
    reason: str | None = Field(None, max_length=1000)
    dry_run: bool = False

    @property
    def job_filter(self) -> JobFilter:
        given = {name: getattr(self, name) for name in JobFilterParams.model_fields}
        return JobFilter(ids=None if self.ids is None else list(dict.fromkeys(self.ids)), **given)

    @property
    def actor(self) -> Actor:
        return Actor(self.by, self.reason)


def run_bulk_action(
    resources: Resources, params: BulkJobParams, invocation: Invocation, action: BulkFunction
) -> dict[str, Any]:
    """Carries the order out, or previews it; what has become due is sent once all is committed."""
    db, job_types = resources.database.connection(), resources.job_types
    if params.dry_run:
        return {"dry_run": preview_of(resources, params.job_filter)}
    done = action(db, job_types, params.job_filter, bulk_context(resources, params.actor, invocation))
    return answer_of(resources, done)


def preview_of(resources: Resources, job_filter: JobFilter) -> dict[str, Any]:
    seen = preview(resources.database.connection(), resources.job_types, job_filter)
    return {"as_of": seen.as_of, "counts": seen.counts, "sample": seen.sample}


def bulk_context(resources: Resources, by: Actor, invocation: Invocation) -> BulkContext:
    budget = Budget(invocation.ends_at - resources.settings.budget_margin_seconds)
    return BulkContext(
        by, budget, lambda ids: resources.publisher.publish_status_of(resources.database.connection(), ids)
    )


def answer_of(resources: Resources, done: BulkResult) -> dict[str, Any]:
    return {
        **done.counts,
        "sent": resources.publisher.send_due(resources.database.connection(), done.due),
        "more": done.more,
    }
