"""What the operations that give an order about jobs share: which jobs, by whom, and what follows each commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from pydantic import Field

from signalbox.budget import Budget
from signalbox.invocation import Invocation, Tools
from signalbox.operate.audit import Orderer
from signalbox.operate.bulk import Done, Terms
from signalbox.operate.filters import Selection
from signalbox.operate.listing import preview
from signalbox.packs.payload import Instant, Payload
from signalbox.packs.registries import Catalogue
from signalbox.postgres.connection import Connection

# Of one order by ids: more are a filter's.
MOST_NAMED = 1000
Carry = Callable[[Connection, Catalogue, Selection, Terms], Done]


class JobFilter(Payload):
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
    def selection(self) -> Selection:
        return Selection(**{name: getattr(self, name) for name in JobFilter.model_fields})


class JobOrder(JobFilter):
    """An order about the jobs that are named, or that a filter finds."""

    ids: list[str] | None = Field(None, min_length=1, max_length=MOST_NAMED)
    by: str = Field("unnamed", min_length=1, max_length=200)
    reason: str | None = Field(None, max_length=1000)
    dry_run: bool = False

    @property
    def selection(self) -> Selection:
        given = {name: getattr(self, name) for name in JobFilter.model_fields}
        return Selection(ids=None if self.ids is None else list(dict.fromkeys(self.ids)), **given)

    @property
    def orderer(self) -> Orderer:
        return Orderer(self.by, self.reason)


def order_jobs(tools: Tools, params: JobOrder, invocation: Invocation, carry: Carry) -> dict[str, Any]:
    """Carries the order out, or previews it; what has become due is sent once all is committed."""
    db, catalogue = tools.database.connection(), tools.catalogue
    if params.dry_run:
        return {"dry_run": preview_of(tools, params.selection)}
    done = carry(db, catalogue, params.selection, terms_of(tools, params.orderer, invocation))
    return answer_of(tools, done)


def preview_of(tools: Tools, selection: Selection) -> dict[str, Any]:
    seen = preview(tools.database.connection(), tools.catalogue, selection)
    return {"as_of": seen.as_of, "counts": seen.counts, "sample": seen.sample}


def terms_of(tools: Tools, by: Orderer, invocation: Invocation) -> Terms:
    budget = Budget(invocation.ends_at - tools.settings.budget_margin_seconds)
    return Terms(by, budget, lambda ids: tools.courier.tell_of(tools.database.connection(), ids))


def answer_of(tools: Tools, done: Done) -> dict[str, Any]:
    return {
        **done.counts,
        "sent": tools.courier.send_due(tools.database.connection(), done.due),
        "more": done.more,
    }
