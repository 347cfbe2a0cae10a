"""Deliver an event of a passport as a signed webhook, until the receiver has taken it.

Each request is counted before it is sent, and its answer is written down before the job ends, whatever it is.
"""

from __future__ import annotations

import hmac
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from passports.encoding.canonical import canonical, instant
from signalbox import Completed, JobContext, JobPayload, Permanent, Refused, Transient, Unavailable
from signalbox.http.dns import addresses_of
from signalbox.http.pinned_exchange import WebhookResponse, send
from signalbox.http.retry_after import seconds_to_wait
from signalbox.http.url import read_url, require_allowed
from signalbox.job_types.webhooks.signing_key import read_signing_keys
from signalbox.packs.refusals import refuse
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
LONGEST_SECONDS = 30.0
LONGEST_WAIT = timedelta(hours=1)


class DeliverPassportWebhook(JobPayload):
    """Say which delivery."""

    webhook_delivery_id: UUID


@dataclass(frozen=True, slots=True)
class Delivery:
    """Hold what is sent where."""

    id: str
    tenant: str
    status: str
    http_status: int | None
    url: str
    secret: str
    event_id: str
    event_type: str
    aggregate_type: str
    aggregate_id: str
    occurred_at: datetime
    payload: dict[str, Any]

    @property
    def body(self) -> bytes:
        return canonical(
            {
                "event_id": self.event_id,
                "event_type": self.event_type,
                "aggregate_type": self.aggregate_type,
                "aggregate_id": self.aggregate_id,
                "occurred_at": instant(self.occurred_at),
                "payload": self.payload,
            }
        )

    def headers(self, key: bytes) -> dict[str, str]:
        return {
            "Content-Type": "application/json",
            "User-Agent": "Signalbox-Passports/1",
            "X-BPC-Signature": f"sha256={hmac.digest(key, self.body, 'sha256').hex()}",
            "X-BPC-Event-Type": self.event_type,
            "X-BPC-Delivery-Id": self.id,
        }


def deliver_passport_webhook(context: JobContext) -> Completed:
    """Return the receiver's status, and whether it had taken the event before."""
    payload: DeliverPassportWebhook = context.payload
    delivery_id = str(payload.webhook_delivery_id)
    row = context.db.execute(SQL["find"], {"id": delivery_id, "tenant": context.job.tenant}).fetchone()
    if row is None:
        raise refuse("NOT_FOUND", f"delivery {delivery_id}, its endpoint or its event does not exist")
    delivery = Delivery(*row)
    if delivery.status == "DELIVERED":
        return _completed(delivery, delivery.http_status, already=True)
    try:
        answer = _send(context, delivery)
    except Refused as refusal:
        _note(context, delivery, error=str(refusal))
        raise Permanent(str(refusal)) from None
    except Unavailable as error:
        _note(context, delivery, error=str(error))
        raise Transient(str(error)) from None
    _note(context, delivery, answer=answer)
    if not 200 <= answer.status < 300:
        raise Transient(f"the receiver answered {answer.status}", _wait(answer))
    return _completed(delivery, answer.status, already=False)


def _send(context: JobContext, delivery: Delivery) -> WebhookResponse:
    """Send one request to the address itself; redirects are answers like others."""
    settings = context.resources.settings
    target = read_url(delivery.url)
    require_allowed(target, settings)
    [key, *_] = read_signing_keys(context.clients, settings.stack, delivery.secret)
    ends_at = min(time.monotonic() + LONGEST_SECONDS, context.budget.ends_at)
    addresses = addresses_of(target, settings, ends_at)
    context.db.execute(SQL["count"], {"id": delivery.id, "tenant": delivery.tenant})
    return send(target, addresses, delivery.headers(key), delivery.body, ends_at=ends_at)


def _note(context: JobContext, delivery: Delivery, answer: WebhookResponse | None = None, error: str = "") -> None:
    """Write down what came of the request."""
    is_taken = answer is not None and 200 <= answer.status < 300
    values = {
        "id": delivery.id,
        "tenant": delivery.tenant,
        "status": "DELIVERED" if is_taken else "FAILED",
        "http_status": answer and answer.status,
        "headers": Jsonb(dict(answer.headers)) if answer else None,
        "body": answer and answer.body,
        "error": error or (None if is_taken or answer is None else f"the receiver answered {answer.status}"),
    }
    context.db.execute(SQL["note"], values)


def _wait(answer: WebhookResponse) -> timedelta | None:
    seconds = seconds_to_wait(answer.headers.get("retry-after"))
    return None if seconds is None else min(timedelta(seconds=seconds), LONGEST_WAIT)


def _completed(delivery: Delivery, http_status: int | None, *, already: bool) -> Completed:
    return Completed({"webhook_delivery_id": delivery.id, "http_status": http_status, "already": already})
