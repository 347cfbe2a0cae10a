"""NOTIF-002: send notifications that quiet hours deferred, each quarter of an hour, once these have ended.

A delivery is marked pending and its message sent in one transaction, the message first: after a crash between the two,
the next run sends it again; none is lost. If its organisation is in quiet hours at the time, because the run is late or
its wishes have changed, it is deferred to their end.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from forecasts.digests.quiet_hours import resume_at
from forecasts.errors import PreferencesRefused
from forecasts.messages import Deliver
from forecasts.settings import settings_of
from signalbox.aws.sqs import publish
from signalbox.batches.keyset import Page, walk
from signalbox.ledger.context import Context, Done
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
# In characters, each of up to four bytes: SQS takes a mebibyte.
LONGEST_PAYLOAD = 250_000

Key = tuple[datetime, str]  # when it was to go out, the delivery's id
START: Key = (datetime.min.replace(tzinfo=UTC), "00000000-0000-0000-0000-000000000000")


@dataclass(frozen=True, slots=True)
class DeferredDelivery:
    """Describe a due delivery, with what its message and the decision about it need."""

    id: str
    notification_id: str
    retry_at: datetime
    payload: str
    organization_id: str
    timezone: str
    quiet_hours: str | None


@dataclass(slots=True)
class Sorted:
    """Describe what becomes of a page's deliveries."""

    messages: list[Deliver] = field(default_factory=list)
    later: dict[str, datetime] = field(default_factory=dict)  # in quiet hours, until that time
    unreadable: dict[str, datetime] = field(default_factory=dict)  # left as they are, due since that time


def requeue_deferred(context: Context) -> Done:
    """Items are the deliveries sent."""
    resume = _Resume(context)
    return walk(context.budget, START, lambda after, size: _requeue_page(context, resume, after, size))


def sort_out(
    deliveries: list[DeferredDelivery], resume: Callable[[DeferredDelivery], datetime], now: datetime
) -> Sorted:
    """Sort out which deliveries go out, which wait, and which can't be read."""
    result = Sorted()
    for delivery in deliveries:
        payload = read_payload(delivery.payload)
        if payload is None:
            result.unreadable[delivery.id] = delivery.retry_at
        elif (until := resume(delivery)) > now:
            result.later[delivery.id] = until
        else:
            notification_id = delivery.notification_id
            result.messages.append(Deliver(delivery_id=delivery.id, notification_id=notification_id, payload=payload))
    return result


def read_payload(text: str) -> dict[str, Any] | None:
    """Return the stored notification, or None if no message can be made of it."""
    payload = json.loads(text) if len(text) <= LONGEST_PAYLOAD else None
    return payload if isinstance(payload, dict) else None


def _requeue_page(context: Context, resume: Callable[[DeferredDelivery], datetime], after: Key, size: int) -> Page[Key]:
    values = {"now": context.now, "after_retry": after[0], "after_id": after[1], "size": size}
    with context.db.transaction():
        taken = [DeferredDelivery(*row) for row in context.db.execute(SQL["take"], values).fetchall()]
        page = sort_out(taken, resume, context.now)
        _put_back(context, page.later | page.unreadable)
        publish(context.clients, settings_of(context).notifications_queue, page.messages)
    _report(context, page)
    last = max(((delivery.retry_at, delivery.id) for delivery in taken), default=after)
    return Page(found=len(taken), done=len(page.messages), last=last)


def _put_back(context: Context, kept: dict[str, datetime]) -> None:
    if kept:
        context.db.execute(SQL["put_back"], {"ids": list(kept), "untils": list(kept.values())})


def _report(context: Context, page: Sorted) -> None:
    if page.later:
        context.metrics.count("DeliveriesDeferredAgain", len(page.later))
    if page.unreadable:
        context.metrics.count("DeliveriesUnreadable", len(page.unreadable))
        context.log.warning("deliveries.left", extra={"delivery_ids": list(page.unreadable)[:100]})


class _Resume:
    """Compute from when on an organisation may be notified, once for each of the few different wishes."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._known: dict[tuple[str, str | None], datetime] = {}

    def __call__(self, delivery: DeferredDelivery) -> datetime:
        wish = (delivery.timezone, delivery.quiet_hours)
        if wish not in self._known:
            self._known[wish] = self._work_out(delivery)
        return self._known[wish]

    def _work_out(self, delivery: DeferredDelivery) -> datetime:
        quiet_hours = json.loads(delivery.quiet_hours or "null")
        try:
            return resume_at({"quiet_hours": quiet_hours}, delivery.timezone, self._context.now)
        except PreferencesRefused as error:
            # It was due by now, and no readable wish says otherwise.
            ids = {"organization_id": delivery.organization_id, "reason": str(error)}
            self._context.log.warning("quiet_hours.ignored", extra=ids)
            return self._context.now
