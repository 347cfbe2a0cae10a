"""An event is delivered once, signed, and each answer of the receiver is written down."""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from passports.chain.events import append_event
from passports.encoding.canonical import canonical, instant
from signalbox.job_types.webhooks import signing_key
from signalbox.testing.stage import Stage
from tests.support.aws import shared_client
from tests.support.passport_rows import Tenant
from tests.support.webhook_receiver import WebhookReceiver, answer, say

KEY = "whsec-1"
WITHIN = {"webhook_allow_http": "on", "webhook_ports": "1-65535", "webhook_allowed_networks": "127.0.0.0/8"}


class Post:
    """Deliver one event of a tenant."""

    def __init__(self, stage: Stage, tenant: Tenant, secret: str) -> None:
        self.stage, self.tenant, self.secret, self.db = stage.another(**WITHIN), tenant, secret, tenant.db
        with self.db.transaction():
            self.event = append_event(
                self.db, tenant.id, "PassportVersion", uuid4(), "QR_GENERATED", {"qr_payload": "x"}
            )

    def submit(self, url: str, tenant: str | None = None, **fields: Any) -> str:
        endpoint = self.tenant.add("webhook_endpoints", url=url, secret=self.secret)
        ids = {"endpoint_id": endpoint, "event_id": self.event.id}
        self.delivery = self.tenant.add("webhook_deliveries", **ids, **fields)
        payload = {"webhook_delivery_id": self.delivery}
        return self.stage.submit("deliver_passport_webhook", payload=payload, tenant=tenant)

    def row(self, *columns: str) -> tuple[Any, ...]:
        query = f"SELECT {', '.join(columns)} FROM passports.webhook_deliveries WHERE id = %s"
        [found] = self.db.execute(query.encode(), (self.delivery,)).fetchall()
        return tuple(found)


@pytest.fixture
def post(stage: Stage, tenant: Tenant, bucket: str, moto: str, monkeypatch: pytest.MonkeyPatch) -> Post:
    monkeypatch.setattr(signing_key, "_kept", {})
    name = f"signalbox/webhooks/{uuid4().hex}"
    shared_client("secretsmanager", moto).create_secret(Name=name, SecretString=KEY)
    return Post(stage, tenant, name)


def test_the_receiver_can_check_what_it_gets(post: Post) -> None:
    with WebhookReceiver(answer(204)) as receiver:
        job = post.stage.step(post.submit(receiver.url()))
    [request] = receiver.received
    event = post.event
    body = {
        "event_id": str(event.id),
        "event_type": "QR_GENERATED",
        "aggregate_type": "PassportVersion",
        "aggregate_id": str(event.aggregate_id),
        "occurred_at": instant(event.occurred_at),
        "payload": {"qr_payload": "x"},
    }
    assert request.body == canonical(body)
    signature = hmac.digest(KEY.encode(), request.body, hashlib.sha256).hex()
    headers = {name.lower(): value for name, value in request.headers.items()}
    assert headers["x-bpc-signature"] == f"sha256={signature}"
    assert (headers["x-bpc-event-type"], headers["x-bpc-delivery-id"]) == ("QR_GENERATED", post.delivery)
    assert job["result"] == {"webhook_delivery_id": post.delivery, "http_status": 204, "already": False}
    assert post.row("status", "attempts", "http_status", "delivered_at IS NOT NULL") == ("DELIVERED", 1, 204, True)


def test_an_event_that_was_delivered_is_not_sent_again(post: Post) -> None:
    with WebhookReceiver() as receiver:
        job = post.stage.step(post.submit(receiver.url(), status="DELIVERED", http_status=200))
    assert (job["result"]["already"], list(receiver.received)) == (True, [])


@pytest.mark.parametrize("status", [301, 400, 404, 410, 429, 500, 503])
def test_any_other_answer_is_tried_again_and_spends_an_attempt(post: Post, status: int) -> None:
    with WebhookReceiver(answer(status, b"no", location="http://127.0.0.1/x"), answer(200, b"yes")) as receiver:
        job_id = post.submit(receiver.url())
        job = post.stage.step(job_id)
        assert (job["status"], job["attempts"], job["error_details"]["type"]) == ("pending", 1, "Transient")
        assert post.row("status", "attempts", "http_status", "response_body") == ("FAILED", 1, status, b"no")
        assert post.stage.step(job_id)["status"] == "completed"
    assert post.row("status", "attempts", "http_status", "last_error") == ("DELIVERED", 2, 200, None)


@pytest.mark.parametrize(("asked", "waits"), [("120", timedelta(minutes=2)), ("999999", timedelta(hours=1))])
def test_a_receiver_that_asks_to_wait_is_waited_for(post: Post, asked: str, waits: timedelta) -> None:
    with WebhookReceiver(answer(503, b"", **{"retry-after": asked})) as receiver:
        job = post.stage.step(post.submit(receiver.url()))
    assert (
        timedelta(0) <= job["scheduled_for"] - job["updated_at"] - waits + timedelta(seconds=5) <= timedelta(seconds=10)
    )


def test_no_answer_is_written_down_and_tried_again(post: Post) -> None:
    with WebhookReceiver(say(b"nonsense")) as receiver:
        job = post.stage.step(post.submit(receiver.url()))
    assert job["status"] == "pending"
    status, http_status, error = post.row("status", "http_status", "last_error")
    assert (status, http_status, bool(error)) == ("FAILED", None, True)


@pytest.mark.parametrize("url", ["ftp://x.example/", "http://169.254.169.254/latest", "not a url"])
def test_an_address_that_is_refused_fails_for_good(post: Post, url: str) -> None:
    job_id = post.submit(url)
    assert post.stage.step(job_id)["status"] == "failed"
    assert post.row("status", "attempts") == ("FAILED", 0)


def test_rows_of_another_tenant_are_not_found(post: Post, db: psycopg.Connection) -> None:
    job_id = post.submit("http://127.0.0.1/", Tenant.make(db).id)
    post.stage.step(job_id)
    assert post.stage.dead_letter(job_id)["error_type"] == "NotFound"
    job_id = post.submit("http://127.0.0.1/")
    db.execute("UPDATE passports.webhook_endpoints SET tenant_id = gen_random_uuid()")
    post.stage.step(job_id)
    assert json.dumps(post.stage.dead_letter(job_id)["final_error_message"])[1:10] == "NOT_FOUND"
