"""Deliver an event as a webhook: one signed POST, at least once, to an address of the public internet.

The receiver's status decides. 2xx means success; 429 and 503 are waited for as long as they ask; other temporary
failures are tried again; and a failure that the same request would meet again is a dead letter at once.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any

from pydantic import Field, JsonValue, ValidationInfo, field_validator

from signalbox.errors import Refused, Unavailable
from signalbox.http.dns import addresses_of
from signalbox.http.pinned_exchange import WebhookResponse, send
from signalbox.http.retry_after import seconds_to_wait
from signalbox.http.url import Receiver, read_url, require_allowed
from signalbox.job_types.webhooks.breaker import Breaker
from signalbox.job_types.webhooks.signature import sign
from signalbox.job_types.webhooks.signing_key import read_signing_keys
from signalbox.packs.job_payload import JobPayload
from signalbox.packs.outcome import Completed, JobFailed, Permanent, RateLimited, Snooze, Transient
from signalbox.worker.job_context import JobContext

USER_AGENT = "Signalbox-Webhooks/1"
LONGEST_SECONDS = 30.0
# A receiver that only ever answers "later" would keep its job for ever, since that spends no attempt.
MOST_EXECUTIONS = 30
SHORTEST_WAIT, LONGEST_WAIT = timedelta(seconds=1), timedelta(days=1)
KEPT_CHARACTERS = 2000
_PASSING = (408, 425)
BREAKER = Breaker()  # of an execution environment

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_VALUE = re.compile(r"[ -~]{0,2000}")
# Our own headers, and those that say how a request is read.
_OURS = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
    }
)
_OUR_BEGINNINGS = ("webhook-", "x-signalbox-")


class DeliverWebhook(JobPayload):
    """Say which event to deliver where. It names the key and never holds it, since people read payloads."""

    url: str
    event_type: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$")]
    event: JsonValue = None  # sent as compact JSON
    body: Annotated[str | None, Field(validate_default=True)] = None  # instead: sent as it is, byte for byte
    secret: Annotated[str, Field(pattern=r"^[A-Za-z0-9/_+=.@:-]{1,512}$")]  # its name or ARN in Secrets Manager
    headers: Annotated[dict[str, str], Field(max_length=20, default_factory=dict)]
    delivery_id: Annotated[str | None, Field(pattern=r"^[!-~]{1,128}$")] = None  # else the job's id
    timeout_seconds: Annotated[float, Field(gt=0, le=LONGEST_SECONDS)] = 10.0

    @field_validator("url")
    @classmethod
    def _url_leads_somewhere(cls, url: str) -> str:
        try:
            read_url(url)
        except Refused as refusal:
            raise ValueError(str(refusal)) from None
        return url

    @field_validator("headers")
    @classmethod
    def _headers_are_the_submitters_own(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not (_TOKEN.fullmatch(name) and _VALUE.fullmatch(value)):
                raise ValueError("names and values must be printable ASCII, and a name has no blanks or separators")
            if name.lower() in _OURS or name.lower().startswith(_OUR_BEGINNINGS):
                raise ValueError(f"'{name}' is set by the delivery itself")
        return headers

    @field_validator("delivery_id")
    @classmethod
    def _delivery_id_ends_where_it_seems_to(cls, delivery_id: str | None) -> str | None:
        if delivery_id is not None and "." in delivery_id:
            raise ValueError("a full stop would end it in the text that is signed")
        return delivery_id

    @field_validator("body")
    @classmethod
    def _either_event_or_body(cls, body: str | None, info: ValidationInfo) -> str | None:
        if (body is None) == (info.data.get("event") is None):
            raise ValueError("give either event, as JSON, or body, as text")
        return body


def cap_key(payload: DeliverWebhook) -> str:
    """Return the receiver, which limits how many of its deliveries run at once."""
    target = read_url(payload.url)
    return f"{target.host}:{target.port}"


def deliver_webhook(context: JobContext) -> Completed | Snooze:
    """Deliver the event, and return the receiver's answer."""
    target = read_url(context.payload.url)
    require_allowed(target, context.resources.settings)
    receiver = (context.job.tenant, target.host, target.port)
    if wait := BREAKER.wait_for(receiver):
        # Spread the waiting deliveries over some seconds.
        delay = timedelta(seconds=wait + random.uniform(0, 10))  # noqa: S311
        return Snooze(delay, f"{target.host} has failed several times in a row: one delivery probes it")
    keys = read_signing_keys(context.clients, context.resources.settings.stack, context.payload.secret)
    try:
        done = _deliver(context, target, keys)
    except (Permanent, RateLimited):  # the receiver works, and has answered
        BREAKER.note_success(receiver)
        raise
    except (JobFailed, Unavailable):
        BREAKER.note_failure(receiver)
        raise
    BREAKER.note_success(receiver)
    return done


def _deliver(context: JobContext, target: Receiver, keys: Sequence[bytes]) -> Completed:
    payload: DeliverWebhook = context.payload
    settings = context.resources.settings
    began = time.monotonic()
    ends_at = min(began + payload.timeout_seconds, context.budget.ends_at)
    addresses = addresses_of(target, settings, ends_at)
    body = _body(payload)
    answer = send(target, addresses, _headers(payload, context.key, keys, body), body, ends_at=ends_at)
    if 200 <= answer.status < 300:
        return Completed(_result(answer, time.monotonic() - began))
    raise _failure(target.host, answer, context.job.execution)


def _body(payload: DeliverWebhook) -> bytes:
    if payload.body is not None:
        return payload.body.encode()
    return json.dumps(payload.event, ensure_ascii=False, separators=(",", ":")).encode()


def _headers(payload: DeliverWebhook, job_key: str, keys: Sequence[bytes], body: bytes) -> dict[str, str]:
    given = {name.title(): value for name, value in payload.headers.items()}
    return {
        "Content-Type": "application/json",
        **given,
        "User-Agent": USER_AGENT,
        "X-Signalbox-Event-Type": payload.event_type,
        # The current time: the invocation may have begun minutes ago, and receivers refuse old requests.
        **sign(keys, payload.delivery_id or job_key, body, int(time.time())),
    }


def _result(answer: WebhookResponse, seconds: float) -> dict[str, Any]:
    text = answer.body.decode("utf-8", "replace").replace("\0", "\ufffd")
    return {
        "status": answer.status,
        "duration_ms": round(seconds * 1000),
        "content_type": answer.headers.get("content-type", "")[:200] or None,
        "response": text[:KEPT_CHARACTERS],
        "response_is_whole": answer.whole and len(text) <= KEPT_CHARACTERS,
    }


def _failure(host: str, answer: WebhookResponse, execution: int) -> JobFailed:
    """Return the error for a status other than 2xx, without the answer's text, which may repeat what was sent."""
    said = f"{host} answered {answer.status}"
    wait = _retry_after(answer.headers.get("retry-after"))
    if answer.status == 429 and execution < MOST_EXECUTIONS:
        return RateLimited(said, wait) if wait is not None else RateLimited(said)
    if answer.status == 429 or answer.status in _PASSING or answer.status >= 500 or answer.status < 200:
        return Transient(said, wait)
    if answer.status < 400:
        return Permanent(f"{said}: redirects are not followed; give the final URL")
    return Permanent(said)


def _retry_after(given: str | None) -> timedelta | None:
    seconds = seconds_to_wait(given)
    return None if seconds is None else min(max(timedelta(seconds=seconds), SHORTEST_WAIT), LONGEST_WAIT)
