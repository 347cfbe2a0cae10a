"""Tell people: a row each, once by its key, and a job that delivers it by mail or SMS.

The rows and the jobs commit together. A notification within the application is its row; no job delivers it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from psycopg.types.json import Jsonb

from compliance.company.people import Person
from signalbox import JobContext, NewJob
from signalbox.job_types.deliver_notification import is_address
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries
from signalbox.runtime.log import Logger

SQL = load_queries(__file__)
Channel = Literal["EMAIL", "SMS", "IN_APP"]
Severity = Literal["INFO", "WARNING", "ERROR", "CRITICAL"]
_PRIORITIES: Mapping[Severity, int] = {"CRITICAL": 1, "WARNING": 3, "ERROR": 3, "INFO": 5}
_LONGEST_SUBJECT = 998


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """Describe what one person is told on one channel. It is stored once for its key."""

    to: Person
    channel: Channel
    job_type: str  # that tells
    entity_type: str
    entity_id: str
    parts: str  # of the key, between the entity and the person
    key_id: str | None = None  # in the key, in place of the entity
    alert_type: str
    severity: Severity
    title: str
    message: str
    site_id: str | None = None
    action_url: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def dedupe_key(self) -> str:
        return f"{self.job_type.upper()}:{self.key_id or self.entity_id}:{self.parts}:{self.to.id}:{self.channel}"

    @property
    def address(self) -> str | None:
        """Return where it is delivered to, or None where the person has no address that would be taken."""
        address = self.to.phone if self.channel == "SMS" else self.to.email
        return address if address and is_address("sms" if self.channel == "SMS" else "email", address) else None


@dataclass(frozen=True, slots=True)
class Told:
    """Say how many rows are new, and which jobs deliver them."""

    new: int
    deliveries: Sequence[NewJob]


def store_notifications(
    db: Connection, log: Logger, company_id: str | None, notifications: Iterable[Notification]
) -> Told:
    """Insert the rows that are not there yet. The caller submits the jobs in the same transaction."""
    reachable = {one.dedupe_key: one for one in notifications if _is_reachable(one, log)}
    if not reachable:
        return Told(0, [])
    rows = [_row(one) for one in reachable.values()]
    stored = db.execute(SQL["store"], {"company_id": company_id, "rows": Jsonb(rows)}).fetchall()
    told = [(id_, reachable[key]) for id_, key in stored]
    return Told(len(told), [_delivery(id_, one, company_id) for id_, one in told if one.channel != "IN_APP"])


def notify(context: JobContext, company_id: str | None, notifications: Iterable[Notification]) -> int:
    """Store what is new and submit its delivery; return how many rows are new."""
    told = store_notifications(context.db, context.log, company_id, notifications)
    if told.deliveries:
        context.submit(told.deliveries)
    return told.new


def _is_reachable(one: Notification, log: Logger) -> bool:
    if one.channel == "IN_APP" or one.address is not None:
        return True
    log.warning("compliance.address_missing", extra={"user_id": one.to.id, "channel": one.channel})
    return False


def _row(one: Notification) -> dict[str, Any]:
    return {
        "user_id": one.to.id,
        "site_id": one.site_id,
        "alert_type": one.alert_type,
        "severity": one.severity,
        "channel": one.channel,
        "title": plain_title(one.title),
        "message": one.message,
        "entity_type": one.entity_type,
        "entity_id": one.entity_id,
        "action_url": one.action_url,
        "metadata": dict(one.metadata),
        "dedupe_key": one.dedupe_key,
    }


def _delivery(id_: str, one: Notification, company_id: str | None) -> NewJob:
    payload = {"recipients": [one.address], "body": one.message, "tenant": company_id, "notification_id": id_}
    mail = {"channel": "email", "subject": plain_title(one.title)[:_LONGEST_SUBJECT]}
    return NewJob(
        "deliver_notification",
        payload | (mail if one.channel == "EMAIL" else {"channel": "sms"}),
        idempotency_key=f"notification:{id_}",
        tenant=company_id,
        priority=_PRIORITIES[one.severity],
    )


def plain_title(text: str) -> str:
    """Return a title without control characters, which could end a mail's header."""
    return "".join(character for character in text if unicodedata.category(character) != "Cc")
