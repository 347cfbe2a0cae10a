"""NOTIF-003: ask each hour for the digests that are due, and plan each organisation's next one by its own calendar.

However many digests an organisation has missed, one is asked for. The message goes out before the next digest is
planned, in one transaction: after a crash between the two, the next run asks again. Digests that are switched off are
planned but not sent, since preferences alone may switch them on again. An organisation whose wishes can't be read keeps
its place and is reported with each run until they are fixed; it holds up no other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from forecasts.digests.digest_times import DAY, next_digest
from forecasts.digests.preferences import DigestWish, read_digest, zone_of
from forecasts.errors import PreferencesRefused
from forecasts.messages import GenerateDigest
from forecasts.settings import settings_of
from signalbox.aws.sqs import publish
from signalbox.batches.keyset import Page, walk
from signalbox.ledger.context import Context, Done
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)

Key = tuple[datetime, str]  # when the digest is due, the organisation's id
START: Key = (datetime.min.replace(tzinfo=UTC), "00000000-0000-0000-0000-000000000000")


@dataclass(frozen=True, slots=True)
class DigestOrganization:
    """Describe an organisation whose digest is due."""

    id: str
    due_at: datetime
    timezone: str
    preferences: Any


@dataclass(slots=True)
class DigestPlan:
    """Describe what becomes of a page's organisations."""

    digests: list[GenerateDigest] = field(default_factory=list)
    next_due: dict[str, datetime] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)  # with the reason


def trigger_digests(context: Context) -> Done:
    """Items are the digests asked for."""
    return walk(context.budget, START, lambda after, size: _trigger_page(context, after, size))


def plan(organizations: list[DigestOrganization], now: datetime) -> DigestPlan:
    """Decide which organisations get a digest now, when each one's next is due, and which have unreadable wishes."""
    result = DigestPlan()
    for organization in organizations:
        try:
            wish = read_digest(organization.preferences)
            due = _next_due(wish, organization.timezone, now)
        except PreferencesRefused as error:
            result.skipped[organization.id] = str(error)
            continue
        result.next_due[organization.id] = due
        if wish.enabled:
            due_at = organization.due_at.astimezone(UTC)
            result.digests.append(GenerateDigest(organization_id=organization.id, due_at=due_at))
    return result


def _next_due(wish: DigestWish, timezone: str, now: datetime) -> datetime:
    """Return the next due time; look a day later at a wish that is switched off and can't be planned."""
    try:
        due = next_digest(wish, zone_of(timezone), now)
    except PreferencesRefused:
        if wish.enabled:
            raise
        due = None
    return due or now + DAY


def _trigger_page(context: Context, after: Key, size: int) -> Page[Key]:
    values = {"now": context.now, "after_due": after[0], "after_id": after[1], "size": size}
    with context.db.transaction():
        due = [DigestOrganization(*row) for row in context.db.execute(SQL["list_due"], values).fetchall()]
        page = plan(due, context.now)
        publish(context.clients, settings_of(context).notifications_queue, page.digests)
        context.db.execute(SQL["plan_next"], {"ids": list(page.next_due), "dues": list(page.next_due.values())})
    _report(context, page.skipped)
    last = max(((organization.due_at, organization.id) for organization in due), default=after)
    return Page(found=len(due), done=len(page.digests), last=last)


def _report(context: Context, skipped: dict[str, str]) -> None:
    if skipped:
        context.metrics.count("DigestsSkipped", len(skipped))
    for organization_id, reason in skipped.items():
        context.log.warning("digest.skipped", extra={"organization_id": organization_id, "reason": reason})
