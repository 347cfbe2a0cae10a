"""List, read, triage and redrive dead letters for an operator."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from signalbox.dead_letters import letters
from signalbox.dead_letters import redrive as redriving
from signalbox.dead_letters.kinds import IgnoreRule, list_kinds
from signalbox.errors import Forbidden, PayloadRefused
from signalbox.invocation import Invocation, Resources
from signalbox.operate.audit import Actor
from signalbox.operate.filters import DeadLetterFilter
from signalbox.operate.redaction import redact_payload
from signalbox.operate.short_ids import IdParams
from signalbox.operations.bulk import bulk_context
from signalbox.packs.payload import Instant


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
    """Set the decision about them; `status` is the filter's, `decision` is what they become.

    With `ignore_until` or `ignore_next` the kind's failures to come are ignored as well.
    """

    decision: Literal["pending", "investigating", "resolved", "ignored"]
    ignore_until: Instant | None = None
    ignore_next: int | None = Field(None, ge=1, le=1_000_000)

    dry_run: bool = False

    @field_validator("ignore_until", "ignore_next")
    @classmethod
    def _of_one_kind(cls, value: datetime | int | None, info: ValidationInfo) -> datetime | int | None:
        """Refuse to ignore what is not a kind as a whole. Fields that are given after this one are not in `info`."""
        given = {name for name in DeadLetterFilter.model_fields if info.data.get(name) is not None}
        if value is None:
            return None
        if info.data.get("decision") != "ignored":
            raise ValueError("goes with the decision 'ignored' alone")
        if given != {"fingerprint"}:
            raise ValueError("ignores a kind as a whole: give its fingerprint, and no ids or other filters")
        if info.data.get("ignore_until") is not None:
            raise ValueError("give ignore_until or ignore_next, not both")
        return value


class Redrive(_BulkDeadLetterParams):
    """Try again what failed for good."""

    dry_run: bool = False
    payload: dict[str, Any] | None = None
    rate_per_minute: int | None = None


def list_dead_letters(resources: Resources, params: ListDeadLetters, invocation: Invocation) -> dict[str, Any]:
    db = resources.database.connection()
    letters.require_known(db, resources.job_types, params)
    if not params.by_kind:
        return letters.list_letters(db, params, params.limit, params.before)
    if params.before is not None:
        raise PayloadRefused("kinds of failures have only one page: before works for single dead letters")
    found = list_kinds(db, params, invocation.clock, params.limit)
    if invocation.tenant is not None:
        for kind in found["kinds"]:
            kind["ignored_next_left"] = None  # it counts other tenants' failures too
    return found


def show_dead_letter(resources: Resources, params: ShowDeadLetter, _: Invocation) -> dict[str, Any]:
    found = letters.show_letter(resources.database.connection(), params.id)
    return {"dead_letter": redact_payload(resources.job_types, found)}


def triage_dead_letters(resources: Resources, params: TriageDeadLetters, invocation: Invocation) -> dict[str, Any]:
    db = resources.database.connection()
    letters.require_known(db, resources.job_types, params)
    rule = _rule(params, invocation)
    if params.dry_run:
        return {"dry_run": letters.preview_triage(db, params, params.decision)}
    return asdict(letters.triage(db, params, params.decision, by=params.by, reason=params.reason, rule=rule))


def _rule(params: TriageDeadLetters, invocation: Invocation) -> IgnoreRule | None:
    if params.ignore_until is None and params.ignore_next is None:
        return None
    if invocation.tenant is not None:
        raise Forbidden(
            f"this token is bound to the tenant '{invocation.tenant}', and ignore_until and ignore_next concern a "
            "kind's failures of every tenant: ask with a token that is bound to none"
        )
    if params.ignore_until is not None and params.ignore_until <= invocation.clock:
        text = "field 'ignore_until': is past: give a time to come"
        raise PayloadRefused(text, [("ignore_until", text)])
    return IgnoreRule(params.ignore_until, params.ignore_next)


def redrive(resources: Resources, params: Redrive, invocation: Invocation) -> dict[str, Any]:
    db, job_types, invoker = resources.database.connection(), resources.job_types, resources.invoker
    letters.require_known(db, job_types, params)
    how: dict[str, Any] = {
        "now": invocation.clock,
        "payload": params.payload,
        "rate_per_minute": params.rate_per_minute,
    }
    if params.dry_run:
        return redriving.preview(db, job_types, invoker, params, **how)
    context = bulk_context(resources, Actor(params.by, params.reason), invocation)
    return redriving.redrive(
        db, job_types, invoker, params, context.by, budget=context.budget, announce=context.announce, **how
    )
