"""Dead letters, as an operator lists, reads, triages and redrives them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

from pydantic import Field

from signalbox.dead_letters import letters
from signalbox.dead_letters.letters import DeadLetterFilter
from signalbox.dead_letters.redrive import redrive as redrive_letters
from signalbox.errors import PayloadRefused
from signalbox.invocation import Invocation, Resources
from signalbox.packs.payload import Instant, Payload

Status = Literal["pending", "investigating", "resolved", "ignored", "redriven"]


class DeadLetterFilterParams(Payload):
    """Which dead letters; all that are given must hold."""

    status: Status | list[Status] | None = None
    source: Literal["job", "message", "invocation"] | None = None
    job_type: str | None = None
    fingerprint: str | None = None
    severity: Literal["info", "warning", "critical"] | None = None
    tenant: str | None = None
    since: Instant | None = None
    until: Instant | None = None

    def selection(self, ids: list[str] | None = None) -> DeadLetterFilter:
        statuses = [self.status] if isinstance(self.status, str) else self.status
        names = DeadLetterFilterParams.model_fields.keys() - {"status"}
        return DeadLetterFilter(ids=ids, statuses=statuses, **{name: getattr(self, name) for name in names})


class ListDeadLetters(DeadLetterFilterParams):
    """`by_kind`: the failures by their fingerprint, each with its counts."""

    by_kind: bool = False
    limit: int = Field(50, ge=1, le=1000)
    before: str | None = None


class ShowDeadLetter(Payload):
    id: str


class _BulkDeadLetterParams(DeadLetterFilterParams):
    ids: list[str] | None = Field(None, min_length=1)
    by: str = Field("unnamed", min_length=1, max_length=200)
    reason: str | None = Field(None, max_length=1000)


class TriageDeadLetters(_BulkDeadLetterParams):
    """What is decided about them; `status` is the filter's, `decision` is what they become."""

    decision: Literal["pending", "investigating", "resolved", "ignored"]


class Redrive(_BulkDeadLetterParams):
    """What failed for good is tried again."""

    dry_run: bool = False
    payload: dict[str, Any] | None = None
    rate_per_minute: int | None = None


def list_dead_letters(resources: Resources, params: ListDeadLetters, _: Invocation) -> dict[str, Any]:
    db, selection = resources.database.connection(), params.selection()
    letters.require_known(db, resources.job_types, selection)
    if not params.by_kind:
        return letters.list_letters(db, selection, params.limit, params.before)
    if params.before is not None:
        raise PayloadRefused("kinds of failures come in one page: before is for single dead letters")
    return letters.list_kinds(db, selection, params.limit)


def show_dead_letter(resources: Resources, params: ShowDeadLetter, _: Invocation) -> dict[str, Any]:
    return {"dead_letter": letters.show_letter(resources.database.connection(), params.id)}


def triage_dead_letters(resources: Resources, params: TriageDeadLetters, _: Invocation) -> dict[str, Any]:
    db, selection = resources.database.connection(), params.selection(params.ids)
    letters.require_known(db, resources.job_types, selection)
    return asdict(letters.triage(db, selection, params.decision, by=params.by, reason=params.reason))


def redrive(resources: Resources, params: Redrive, invocation: Invocation) -> dict[str, Any]:
    selection = params.selection(params.ids)
    letters.require_known(resources.database.connection(), resources.job_types, selection)
    return redrive_letters(
        resources.database.connection(),
        resources.job_types,
        resources.invoker,
        selection,
        by=params.by,
        reason=params.reason,
        now=invocation.clock,
        dry_run=params.dry_run,
        payload=params.payload,
        rate_per_minute=params.rate_per_minute,
        announce=lambda ids: resources.publisher.publish_status_of(resources.database.connection(), ids),
    )
