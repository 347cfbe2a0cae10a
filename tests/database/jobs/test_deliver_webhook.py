"""Webhooks are signed verifiably, never sent inside, and cut off if the receiver misbehaves."""

from __future__ import annotations

import json
import re
import socket
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from threading import Event
from typing import Any
from uuid import uuid4

import boto3
import psycopg
import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC

from signalbox.errors import JobRefused
from signalbox.http import pinned_exchange
from signalbox.job_types import JOB_TYPES
from signalbox.job_types.webhooks import deliver_webhook
from signalbox.job_types.webhooks.breaker import FAILURES_IN_A_ROW, Breaker
from signalbox.packs.retry_policy import next_delay
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.stage import Stage
from tests.support.tls_server import write_certificate
from tests.support.webhook_receiver import Behaviour, Received, WebhookReceiver, answer, drip, pour, say

KEY = "a key that both sides have"
EVENT = {"passport": 17, "words": "grün & \u2028 schön", "done": True}
# Loopback is no public address, and a free port is none of the usual ones.
WITHIN = {"webhook_allow_http": "on", "webhook_ports": "1-65535", "webhook_allowed_networks": "127.0.0.0/8"}


class Post:
    """Deliver webhooks that are signed with this secret."""

    def __init__(self, stage: Stage, secret: str) -> None:
        self.stage, self.secret = stage, secret

    def submit(self, url: str, **fields: Any) -> str:
        given = {"url": url, "event_type": "passport.signed", "event": EVENT, "secret": self.secret} | fields
        payload = {name: value for name, value in given.items() if value is not None}
        return self.stage.submit("deliver_webhook", payload=payload)

    def deliver(self, url: str, **fields: Any) -> dict[str, Any]:
        """Return the job after its first attempt."""
        job_id = self.submit(url, **fields)
        self.stage.work(job_id)
        return self.stage.job(job_id)

    def try_again(self, job: dict[str, Any]) -> dict[str, Any]:
        return self.stage.step(str(job["id"]))


class Names:
    """Resolve these names with one answer after the other, and all others as the system does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **answers: list[list[str]]) -> None:
        self.asked = 0
        self._answers = {name.replace("_", "."): list(told) for name, told in answers.items()}
        self._others = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self._look_up)

    def _look_up(self, host: Any, port: Any, *args: Any, **options: Any) -> Any:
        if host not in self._answers:
            return self._others(host, port, *args, **options)
        self.asked += 1
        told = self._answers[host]
        addresses = told.pop(0) if len(told) > 1 else told[0]
        return [(socket.AF_INET6 if ":" in one else socket.AF_INET, 1, 6, "", (one, port)) for one in addresses]


@pytest.fixture(autouse=True)
def breaker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start with the breaker of a new process."""
    monkeypatch.setattr(deliver_webhook, "BREAKER", Breaker())


@pytest.fixture
def outside(moto: str, invokes: AwsStandIn, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a secret."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", moto)
    return new_secret(KEY)


def new_secret(text: str) -> str:
    return boto3.client("secretsmanager").create_secret(Name=f"signalbox/webhooks/{uuid4().hex}", SecretString=text)[
        "Name"
    ]


@pytest.fixture
def post(stage: Stage, outside: str) -> Post:
    return Post(stage.another(**WITHIN), outside)


@pytest.fixture
def strict_post(stage: Stage, outside: str) -> Post:
    """Use a deployed stack's settings but for http and the ports."""
    return Post(stage.another(webhook_allow_http="on", webhook_ports="1-65535"), outside)


def is_signed(request: Received, key: bytes | str, within: float = 60) -> bool:
    """Check as a receiver would, by the docs alone and with another library than ours."""
    id_, sent = request.headers["webhook-id"], request.headers["webhook-timestamp"]
    checked = HMAC(key.encode() if isinstance(key, str) else key, SHA256())
    checked.update(f"{id_}.{sent}.".encode() + request.body)
    expected = f"v1,{b64encode(checked.finalize()).decode()}"
    given = request.headers["webhook-signature"].split(" ")
    return abs(time.time() - int(sent)) <= within and expected in given


def test_a_receiver_gets_the_event_signed_and_the_job_keeps_the_answer(post: Post) -> None:
    with WebhookReceiver(answer(202, b'{"taken": true}', Content_Type="application/json")) as receiver:
        job = post.deliver(receiver.url(path="/hook?tenant=7"), headers={"authorization": "Bearer x"})
    assert job["status"] == "completed"
    [request] = receiver.received
    assert request.line == "POST /hook?tenant=7 HTTP/1.1"
    assert json.loads(request.body) == EVENT
    assert is_signed(request, KEY)
    assert not is_signed(request, "another key")
    assert not is_signed(Received(request.line, request.headers, request.body + b" "), KEY)
    expected = {
        "Host": f"127.0.0.1:{receiver.port}",
        "Content-Type": "application/json",
        "Authorization": "Bearer x",
        "User-Agent": "Signalbox-Webhooks/1",
        "X-Signalbox-Event-Type": "passport.signed",
        "webhook-id": str(job["id"]),
    }
    assert request.headers.items() >= expected.items()
    assert not {"X-Signalbox-Signature", "X-Signature-256", "X-Signalbox-Delivery-Id"} & set(request.headers)
    result = job["result"]
    assert (result["status"], result["response"], result["response_is_whole"]) == (202, '{"taken": true}', True)
    assert 0 <= result["duration_ms"] < 5000


def test_documents_show_a_receiver_how_to_verify_it(post: Post, root: Path) -> None:
    [code] = re.findall(
        r"```python\n(import base64.*?)```", (root / "docs" / "job-types.md").read_text("utf-8"), re.DOTALL
    )
    told: dict[str, Any] = {}
    exec(code, told)
    with WebhookReceiver() as receiver:
        post.deliver(receiver.url())
    [request] = receiver.received
    headers = request.headers
    assert told["is_ours"](KEY, headers, request.body)
    assert not told["is_ours"]("another key", headers, request.body)
    assert not told["is_ours"](KEY, headers, request.body + b" ")
    assert not told["is_ours"](KEY, headers | {"webhook-id": "another"}, request.body)
    assert not told["is_ours"](KEY, headers, request.body, tolerance=-1)


def test_each_attempt_bears_the_same_id_and_the_same_body(post: Post) -> None:
    with WebhookReceiver(answer(500), answer(200)) as receiver:
        job = post.try_again(post.deliver(receiver.url(), delivery_id="delivery-7"))
    assert (job["status"], job["attempts"], job["subject_id"]) == ("completed", 2, "delivery-7")
    first, second = receiver.received
    assert first.body == second.body
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == "delivery-7"
    assert is_signed(second, KEY)


def test_a_body_given_as_text_is_sent_byte_for_byte(post: Post) -> None:
    text = '{"b": 1.0,  "a":\t"ü"}\n'
    with WebhookReceiver() as receiver:
        post.deliver(receiver.url(), event=None, body=text, headers={"content-type": "text/plain"})
    [request] = receiver.received
    assert request.body == text.encode()
    assert request.headers["Content-Type"] == "text/plain"
    assert is_signed(request, KEY)


@pytest.mark.parametrize("status", [408, 425, 500, 502, 503, 599])
def test_what_may_pass_is_tried_again(post: Post, status: int) -> None:
    with WebhookReceiver(answer(status)) as receiver:
        job = post.deliver(receiver.url())
    assert (job["status"], job["attempts"]) == ("pending", 1)
    assert job["error_details"]["message"] == f"127.0.0.1 answered {status}"


def test_receiver_that_fails_in_a_row_is_left_alone(post: Post) -> None:
    with WebhookReceiver(answer(503)) as receiver, WebhookReceiver() as other:
        for _ in range(FAILURES_IN_A_ROW):
            post.deliver(receiver.url())
        job = post.deliver(receiver.url())
        assert post.deliver(other.url())["status"] == "completed"
    assert (job["status"], job["attempts"]) == ("pending", 0)
    assert "failed several times in a row" in job["progress_message"]


def test_only_so_many_deliveries_to_a_receiver_are_at_work(post: Post, db: psycopg.Connection) -> None:
    with WebhookReceiver() as receiver:
        job = post.deliver(receiver.url())
        [cap] = db.execute("SELECT kind, key, max_running, by_default FROM signalbox.job_caps").fetchall()
        assert cap == ("key", f"deliver_webhook - 127.0.0.1:{receiver.port}", 50, True)
        assert (job["status"], job["cap_key"]) == ("completed", cap[1])
        db.execute("UPDATE signalbox.job_caps SET max_running = 0")
        assert post.deliver(receiver.url())["held_by"] == f"key:{cap[1]}"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 413, 422])
def test_what_would_be_refused_again_is_a_dead_letter_at_once(post: Post, status: int) -> None:
    with WebhookReceiver(answer(status)) as receiver:
        job = post.deliver(receiver.url())
    assert (job["status"], job["attempts"]) == ("failed", 1)
    assert post.stage.dead_letter(job["id"])["failure_reason"] == "permanent"


@pytest.mark.parametrize("status", [301, 302, 303, 304, 307, 308])
def test_a_redirect_is_not_followed(post: Post, status: int) -> None:
    with WebhookReceiver() as elsewhere, WebhookReceiver(answer(status, Location=elsewhere.url())) as receiver:
        job = post.deliver(receiver.url())
        assert (job["status"], elsewhere.connections) == ("failed", 0)
    assert "redirects are not followed" in job["error_details"]["message"]


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_retries_begin_within_seconds_and_end_after_a_day(chance: float) -> None:
    policy = next(one for one in JOB_TYPES if one.name == "deliver_webhook").retry
    waits = [next_delay(policy, attempt, chance) for attempt in range(1, policy.max_attempts)]
    assert waits[0] <= timedelta(seconds=10)
    assert timedelta(days=1) <= sum(waits, timedelta()) <= timedelta(days=2)
    assert max(waits) <= timedelta(hours=8)


def test_a_receiver_that_fails_is_tried_twelve_times(post: Post, db: psycopg.Connection) -> None:
    with WebhookReceiver(answer(500)) as receiver:
        job = post.deliver(receiver.url())
        assert 3.9 < (job["scheduled_for"] - job["updated_at"]).total_seconds() < 6.1
        db.execute("UPDATE signalbox.jobs SET attempts = 10")
        job = post.try_again(job)
        assert job["status"] == "pending"
        job = post.try_again(job)
    assert (job["status"], job["attempts"]) == ("failed", 12)
    assert post.stage.dead_letter(job["id"])["failure_reason"] == "exhausted"


def in_an_hour() -> str:
    return format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)


@pytest.mark.parametrize(("status", "attempts"), [(429, 0), (503, 1)])
@pytest.mark.parametrize(
    ("asked", "seconds"),
    [("120", 120), (in_an_hour(), 3600), ("9" * 400, 86400), ("0", 1), ("-5", None), ("soon", None)],
    ids=["seconds", "date", "too long", "none", "past", "words"],
)
def test_a_receiver_that_asks_for_patience_gets_it(
    post: Post, status: int, attempts: int, asked: str, seconds: float | None
) -> None:
    with WebhookReceiver(answer(status, Retry_After=asked)) as receiver:
        job = post.deliver(receiver.url())
    assert (job["status"], job["attempts"]) == ("pending", attempts)
    delay = (job["scheduled_for"] - job["updated_at"]).total_seconds()
    usual = 30 if status == 429 else 5
    expected = max(seconds or usual, usual if status == 503 else 1)
    assert 0.75 * expected < delay < 1.25 * expected + 2  # the date in the header was made before the test began


def test_patience_with_a_receiver_has_an_end(post: Post, db: psycopg.Connection) -> None:
    with WebhookReceiver(answer(429, Retry_After="60")) as receiver:
        job = post.deliver(receiver.url())
        db.execute("UPDATE signalbox.jobs SET executions = 29")
        assert post.try_again(job)["attempts"] == 1


LIMIT = 0.4
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"


@pytest.mark.parametrize(
    "behaviour",
    [
        say(b"", then_wait=True),
        say(b"HTTP/1.1 200", then_wait=True),
        drip(b"", b"H"),
        drip(b"HTTP/1.1 200 OK\r\nX: ", b"x"),
        drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
    ids=["hangs", "stops", "drips", "drips a header", "never comes to the point"],
)
def test_a_receiver_that_takes_its_time_is_cut_off(post: Post, behaviour: Behaviour) -> None:
    with WebhookReceiver(behaviour) as receiver:
        began = time.monotonic()
        job = post.deliver(receiver.url(), timeout_seconds=LIMIT)
        assert LIMIT <= time.monotonic() - began < LIMIT + 2
    assert (job["status"], job["attempts"]) == ("pending", 1)
    assert job["error_details"]["message"] == "127.0.0.1 did not answer in time"


@pytest.mark.parametrize(
    "behaviour",
    [
        say(b""),
        say(b"SSH-2.0-OpenSSH_9.6\r\n"),
        say(b"\x00\xff\x00\r\n\r\n"),
        say(b"HTTP/1.1 200"),
        pour(HEAD, b"X-More: and more\r\n"),
        pour(HEAD + b"X: ", b"x" * 1000),
        pour(b"", b"x" * 1000),
        pour(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
    ids=["hangs up", "speaks otherwise", "noise", "breaks off", "headers", "a header", "no line", "continues"],
)
def test_what_is_no_answer_is_a_failure_that_may_pass(post: Post, behaviour: Behaviour) -> None:
    with WebhookReceiver(behaviour) as receiver:
        job = post.deliver(receiver.url(), timeout_seconds=20)
    assert (job["status"], job["attempts"]) == ("pending", 1)
    assert job["error_details"]["message"].startswith("127.0.0.1 gave no answer: ")


@pytest.mark.parametrize(
    ("behaviour", "kept"),
    [
        (pour(HEAD + b"\r\n", b"x" * 1000), 2000),
        (pour(HEAD + b"Content-Length: 999999999999\r\n\r\n", b"x" * 1000), 2000),
        (pour(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"), 2000),
        (say(HEAD + b"Content-Length: 99\r\n\r\nshort"), 5),
        (say(HEAD + b"Content-Length: 99\r\n\r\nshort", then_wait=True), 5),
        (say(HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\nnonsense", then_wait=True), 5),
        (drip(HEAD + b"\r\nshort", b""), 5),
    ],
    ids=["endless", "a terabyte", "endless chunks", "too short", "waits for more", "bad chunks", "never ends"],
)
def test_status_decides_no_matter_what_follows(post: Post, behaviour: Behaviour, kept: int) -> None:
    with WebhookReceiver(behaviour) as receiver:
        began = time.monotonic()
        job = post.deliver(receiver.url(), timeout_seconds=1)
        assert time.monotonic() - began < 3
    assert job["status"] == "completed"
    assert (len(job["result"]["response"]), job["result"]["response_is_whole"]) == (kept, False)


def test_a_longer_answer_than_announced_ends_where_it_was_to_end(post: Post) -> None:
    with WebhookReceiver(say(HEAD + b"Content-Length: 5\r\n\r\nshort of nothing", then_wait=True)) as receiver:
        job = post.deliver(receiver.url())
    assert (job["result"]["response"], job["result"]["response_is_whole"]) == ("short", True)
    assert job["result"]["duration_ms"] < 1000 * pinned_exchange.BODY_SECONDS


def test_an_answer_that_is_no_text_can_be_kept(post: Post) -> None:
    with WebhookReceiver(answer(200, b"\x00\xff\xfe")) as receiver:
        job = post.deliver(receiver.url())
    assert job["result"]["response"] == "\ufffd\ufffd\ufffd"


def test_an_answer_given_before_all_was_read_counts(post: Post) -> None:
    def refuse_at_once(connection: socket.socket, _: Event) -> None:
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        connection.shutdown(socket.SHUT_RDWR)

    with WebhookReceiver(refuse_at_once) as receiver:
        job = post.deliver(receiver.url(), event={"much": "x" * 190_000})
    assert (job["status"], job["error_details"]["message"]) == ("failed", "127.0.0.1 answered 413")


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0", "0.0.0.0", "[::1]", "[::]",
     "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]"],
)  # fmt: skip
def test_no_way_of_writing_it_leads_to_this_machine(strict_post: Post, host: str) -> None:
    with WebhookReceiver() as receiver:
        job = strict_post.deliver(receiver.url(host), timeout_seconds=2)
        assert receiver.connections == 0
    assert job["status"] == "failed"
    assert job["error_details"]["type"] == "ReceiverRefused"


@pytest.mark.parametrize("host", ["169.254.169.254", "[fd00:ec2::254]", "169.254.170.2", "10.0.0.1", "172.31.0.2"])
def test_neither_metadata_nor_private_networks_are_reached(strict_post: Post, host: str) -> None:
    job = strict_post.deliver(f"http://{host}/latest/meta-data/", timeout_seconds=2)
    assert (job["status"], job["error_details"]["type"]) == ("failed", "ReceiverRefused")
    assert "latest" not in job["error_details"]["message"]


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["169.254.169.254"], ["93.184.216.34", "127.0.0.1"], ["2606:4700::1", "fd00:ec2::254"],
     ["93.184.216.34", "fe80::1%eth0"], ["::ffff:127.0.0.1"]],
)  # fmt: skip
def test_a_name_with_any_address_inside_is_refused_whole(
    strict_post: Post, monkeypatch: pytest.MonkeyPatch, addresses: list[str]
) -> None:
    Names(monkeypatch, hooks_example_org=[addresses])
    opened: list[Any] = []
    monkeypatch.setattr(pinned_exchange, "_open", lambda *asked: opened.append(asked))
    with WebhookReceiver() as receiver:
        job = strict_post.deliver(receiver.url("hooks.example.org"))
        assert (receiver.connections, opened) == (0, [])
    assert (job["status"], job["error_details"]["type"]) == ("failed", "ReceiverRefused")
    assert not any(address in json.dumps(job["error_details"]) for address in addresses)


def test_a_name_that_changes_its_mind_is_asked_once(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    with WebhookReceiver() as receiver:
        names = Names(monkeypatch, hooks_example_org=[["127.0.0.1"], ["169.254.169.254"]])
        job = post.deliver(receiver.url("hooks.example.org"))
        assert (job["status"], names.asked, receiver.connections) == ("completed", 1, 1)
        assert receiver.received[0].headers["Host"] == f"hooks.example.org:{receiver.port}"
        assert post.deliver(receiver.url("hooks.example.org"))["status"] == "failed"


def test_the_next_address_is_tried_where_nobody_listens(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    Names(monkeypatch, hooks_example_org=[["127.0.0.2", "127.0.0.1"]])
    with WebhookReceiver() as receiver:
        assert post.deliver(receiver.url("hooks.example.org"))["status"] == "completed"


def test_a_network_of_ours_may_be_refused_although_it_is_public(
    stage: Stage, db: psycopg.Connection, outside: str
) -> None:
    post = Post(stage.another(**WITHIN, webhook_refused_networks="127.0.0.0/8"), outside)
    with WebhookReceiver() as receiver:
        job = post.deliver(receiver.url())
        assert (job["status"], receiver.connections) == ("failed", 0)


def test_plain_http_and_odd_ports_are_for_stacks_that_say_so(stage: Stage, outside: str) -> None:
    post = Post(stage.another(webhook_allowed_networks="127.0.0.0/8"), outside)
    with WebhookReceiver() as receiver:
        plain, odd = post.deliver(receiver.url()), post.deliver(receiver.url(scheme="https"))
        assert receiver.connections == 0
    assert "SIGNALBOX_WEBHOOK_ALLOW_HTTP" in plain["error_details"]["message"]
    assert "SIGNALBOX_WEBHOOK_PORTS" in odd["error_details"]["message"]


def test_a_name_that_is_not_known_may_be_known_later(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    Names(monkeypatch, hooks_example_org=[[]])
    job = post.deliver("https://hooks.example.org/")
    assert (job["status"], job["error_details"]["type"]) == ("pending", "NameUnresolved")


def test_a_resolver_that_hangs_is_not_waited_for(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    over, others = Event(), socket.getaddrinfo

    def hang(host: Any, *args: Any, **options: Any) -> Any:
        if host == "hooks.example.org":
            over.wait(30)
            return []
        return others(host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    began = time.monotonic()
    job = post.deliver("https://hooks.example.org/", timeout_seconds=LIMIT)
    over.set()
    assert time.monotonic() - began < LIMIT + 2
    assert job["error_details"]["message"] == "hooks.example.org: the resolver did not answer in time"


@pytest.fixture
def chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a certificate for hooks.example.org that the worker trusts, with its key."""
    bundle, chain = tmp_path / "ca.pem", tmp_path / "server.pem"
    write_certificate(bundle, chain, "hooks.example.org")
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    pinned_exchange.trust.cache_clear()
    yield chain
    pinned_exchange.trust.cache_clear()


def test_over_tls_the_name_is_verified_and_the_checked_address_called(
    post: Post, monkeypatch: pytest.MonkeyPatch, chain: Path
) -> None:
    names = Names(monkeypatch, hooks_example_org=[["127.0.0.1"]])
    with WebhookReceiver(answer(200, b"taken"), chain=chain) as receiver:
        job = post.deliver(receiver.url("hooks.example.org", "https"))
    assert (job["status"], job["result"]["response"], names.asked) == ("completed", "taken", 1)
    assert list(receiver.names_asked) == ["hooks.example.org"]
    assert is_signed(receiver.received[0], KEY)


def test_a_receiver_of_another_name_hears_nothing(post: Post, monkeypatch: pytest.MonkeyPatch, chain: Path) -> None:
    Names(monkeypatch, other_example_org=[["127.0.0.1"]])
    with WebhookReceiver(chain=chain) as receiver:
        for host in ("other.example.org", "127.0.0.1"):
            job = post.deliver(receiver.url(host, "https"))
            assert job["status"] == "pending"
            assert "has no certificate that can be trusted" in job["error_details"]["message"]
        assert not receiver.received


def test_a_receiver_of_an_unknown_authority_hears_nothing(
    post: Post, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, chain: Path
) -> None:
    Names(monkeypatch, hooks_example_org=[["127.0.0.1"]])
    write_certificate(tmp_path / "another-ca.pem", chain, "hooks.example.org")
    with WebhookReceiver(chain=chain) as receiver:
        job = post.deliver(receiver.url("hooks.example.org", "https"))
        assert not receiver.received
    assert "has no certificate that can be trusted" in job["error_details"]["message"]


def test_a_receiver_that_never_shakes_hands_is_cut_off(
    post: Post, monkeypatch: pytest.MonkeyPatch, chain: Path
) -> None:
    Names(monkeypatch, hooks_example_org=[["127.0.0.1"]])
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://hooks.example.org:{silent.getsockname()[1]}/"
        job = post.deliver(url, timeout_seconds=LIMIT)
    assert job["error_details"]["message"] == "hooks.example.org did not answer in time"


def test_the_key_may_stand_in_json(post: Post) -> None:
    post.secret = new_secret(json.dumps({"signing_key": "inner", "of": "somebody"}))
    with WebhookReceiver() as receiver:
        assert post.deliver(receiver.url())["status"] == "completed"
    assert is_signed(receiver.received[0], "inner")


WHSEC = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.mark.parametrize("text", [WHSEC, json.dumps({"signing_key": WHSEC})])
def test_a_secret_of_the_standard_holds_its_key_in_base64(post: Post, text: str) -> None:
    post.secret = new_secret(text)
    with WebhookReceiver() as receiver:
        post.deliver(receiver.url())
    assert is_signed(receiver.received[0], b64decode(WHSEC.removeprefix("whsec_")))


def rotate(secret: str, text: str, stage: str = "AWSCURRENT") -> None:
    boto3.client("secretsmanager").put_secret_value(SecretId=secret, SecretString=text, VersionStages=[stage])


def test_while_a_secret_is_rotated_each_of_its_keys_signs(post: Post) -> None:
    rotate(post.secret, "the new key")
    rotate(post.secret, "the key to come", "AWSPENDING")
    with WebhookReceiver() as receiver:
        post.deliver(receiver.url())
    [request] = receiver.received
    assert len(request.headers["webhook-signature"].split(" ")) == 3
    assert all(is_signed(request, key) for key in ("the new key", KEY, "the key to come"))


def test_a_version_without_a_key_does_not_keep_the_current_one_from_signing(post: Post) -> None:
    rotate(post.secret, "{}", "AWSPENDING")
    with WebhookReceiver() as receiver:
        post.deliver(receiver.url())
    [request] = receiver.received
    assert (len(request.headers["webhook-signature"].split(" ")), is_signed(request, KEY)) == (1, True)


@pytest.mark.parametrize("text", [" ", "{", '{"key": "x"}', "whsec_", "whsec_no base64!"])
def test_without_a_key_nothing_is_sent(post: Post, text: str) -> None:
    post.secret = new_secret(text)
    with WebhookReceiver() as receiver:
        job = post.deliver(receiver.url())
        assert (job["status"], receiver.connections) == ("failed", 0)
    assert "holds no key to sign with" in job["error_details"]["message"]


def test_a_secret_that_does_not_exist_is_named(post: Post) -> None:
    post.secret = "signalbox/webhooks/nobody"
    job = post.deliver("https://hooks.example.org/")
    assert (job["status"], job["error_details"]["message"]) == (
        "failed",
        "secret 'signalbox/webhooks/nobody' does not exist: `aws secretsmanager create-secret --name "
        "signalbox/webhooks/nobody --secret-string KEY` creates it; then redrive the dead letter",
    )


@pytest.mark.parametrize(
    "name", ["signalbox-database", "arn:aws:secretsmanager:us-east-1:123456789012:secret:other/webhooks/a"]
)
def test_a_secret_that_is_not_for_webhooks_is_never_read(post: Post, name: str) -> None:
    post.secret = name
    job = post.deliver("https://receiver.example/hook")
    letter = post.stage.dead_letter(job["id"])
    assert (letter["failure_reason"], letter["error_type"]) == ("permanent", "SigningKeyRefused")


def test_no_secret_is_reported(post: Post, capsys: pytest.CaptureFixture[str]) -> None:
    with WebhookReceiver(answer(500, b"what you sent was: sesame")) as receiver:
        job = post.deliver(receiver.url(path="/token-in-a-path"), event={"word": "sesame"})
    told = capsys.readouterr()
    for text in (told.out, told.err, json.dumps(job["error_details"])):
        assert not any(secret in text for secret in (KEY, "sesame", "token-in-a-path"))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"url": "ftp://a.example/"}, "field 'url': the URL does not start with https://"),
        ({"event_type": "a b"}, "field 'event_type'"),
        ({"event_type": "a\r\nX: y"}, "field 'event_type'"),
        ({"body": "x"}, "field 'body': give either event, as JSON, or body, as text"),
        ({"event": None}, "field 'body': give either event"),
        ({"secret": "a key, with blanks"}, "field 'secret'"),
        ({"headers": {"Host": "x"}}, "field 'headers': 'Host' is set by the delivery itself"),
        ({"headers": {"x-signalbox-event-type": "x"}}, "is set by the delivery itself"),
        ({"headers": {"Webhook-Signature": "x"}}, "is set by the delivery itself"),
        ({"headers": {"Transfer-Encoding": "chunked"}}, "is set by the delivery itself"),
        ({"headers": {"X-A": "b\r\nX-C: d"}}, "field 'headers'"),
        ({"headers": {"X A": "b"}}, "field 'headers'"),
        ({"delivery_id": "a\nb"}, "field 'delivery_id'"),
        ({"delivery_id": "a.1"}, "field 'delivery_id': a full stop"),
        ({"timeout_seconds": 31}, "field 'timeout_seconds'"),
        ({"signing_key": KEY}, "field 'signing_key' is not known"),
    ],
)
def test_what_can_not_be_sent_is_refused_when_it_is_submitted(post: Post, fields: Any, words: str) -> None:
    with pytest.raises(JobRefused) as caught:
        post.submit(**({"url": "https://a.example/"} | fields))
    assert words in str(caught.value)
    assert KEY not in str(caught.value)
