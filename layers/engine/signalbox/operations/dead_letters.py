"""List, read, triage and redrive dead letters for an operator."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

from pydantic import Field

from signalbox.dead_letters import letters
from signalbox.dead_letters.redrive import redrive as redrive_letters
from signalbox.errors import PayloadRefused
from signalbox.invocation import Invocation, Resources
from signalbox.operate.filters import DeadLetterFilter
from signalbox.operate.redaction import redact_payload
from signalbox.operate.short_ids import IdParams


class ListDeadLetters(DeadLetterFilter):
    """List dead letters; with `by_kind` the failures by their fingerprint, each with its counts."""

    by_kind: bool = False
    limit: int = Field(50, ge=1, le=1000)
    before: str | None = None


class ShowDeadLetter(IdParams):
    ID_FIELDS = (("id", "dead_letter"),)
    id: str


class _BulkDeadLetterParams(DeadLetterFilter):
    by: str = Field("unnamed", min_length=1, max_length=200)
    reason: str | None = Field(None, max_length=1000)


class TriageDeadLetters(_BulkDeadLetterParams):
    """Set the decision about them; `status` is the filter's, `decision` is what they become."""

    decision: Literal["pending", "investigating", "resolved", "ignored"]
    dry_run: bool = False


class Redrive(_BulkDeadLetterParams):
    """Try again what failed for good."""

    dry_run: bool = False
    payload: dict[str, Any] | None = None
    rate_per_minute: int | None = None


def list_dead_letters(resources: Resources, params: ListDeadLetters, _: Invocation) -> dict[str, Any]:
    db = resources.database.connection()
    letters.require_known(db, resources.job_types, params)
    if not params.by_kind:
        return letters.list_letters(db, params, params.limit, params.before)
    if params.before is not None:
        raise PayloadRefused("kinds of failures have only one page: before works for single dead letters")
    return letters.list_kinds(db, params, params.limit)


def show_dead_letter(resources: Resources, params: ShowDeadLetter, _: Invocation) -> dict[str, Any]:
    found = letters.show_letter(resources.database.connection(), params.id)
    return {"dead_letter": redact_payload(resources.job_types, found)}


def triage_dead_letters(resources: Resources, params: TriageDeadLetters, _: Invocation) -> dict[str, Any]:
    db = resources.database.connection()
    letters.require_known(db, resources.job_types, params)
    if params.dry_run:
        return {"dry_run": letters.preview_triage(db, params, params.decision)}
    return asdict(letters.triage(db, params, params.decision, by=params.by, reason=params.reason))


def redrive(resources: Resources, params: Redrive, invocation: Invocation) -> dict[str, Any]:
    letters.require_known(resources.database.connection(), resources.job_types, params)
    return redrive_letters(
        resources.database.connection(),
        resources.job_types,
        resources.invoker,
        params,
        by=params.by,
        reason=params.reason,
        now=invocation.clock,
        dry_run=params.dry_run,
        payload=params.payload,
        rate_per_minute=params.rate_per_minute,
        announce=lambda ids: resources.publisher.publish_status_of(resources.database.connection(), ids),
    )
