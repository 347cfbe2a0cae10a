"""A pack is sent to each recipient once it can be, and opened by a link that expires and can be revoked."""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import psycopg
import pytest
import urllib3

from compliance.sharing import deliver_pack, pack_distribution
from signalbox.testing.stage import Stage
from signalbox_laptop.stand_ins.aws_services import AwsServices
from tests.support.at_once import at_once
from tests.support.aws import shared_client
from tests.support.compliance_rows import Workforce, add, rows
from tests.support.http_api import HttpClient

ANN = {"email": "ann@client.example", "name": "Ann"}
BOB = {"email": "bob@client.example"}


class Sharing:
    """Hold a pack in the bucket, and share it."""

    def __init__(self, people: Workforce, stage: Stage, services: AwsServices, bucket: str, moto: str) -> None:
        self.people, self.stage, self.bucket, self.db = people, stage, bucket, people.db
        self.ses, self.s3, self.moto = services.addresses["ses"], shared_client("s3", moto), moto
        self.path = "audit-packs/c/s/p/audit-pack-20260301T080000Z.pdf"
        self.s3.put_object(Bucket=bucket, Key=self.path, Body=b"%PDF pack", ContentType="application/pdf")
        self.pack_id = self.pack()
        self.http = urllib3.PoolManager()

    def pack(self, **fields: Any) -> str:
        return add(self.db, "audit_packs", **self.people.ids | {"storage_path": self.path} | fields)

    def submit(self, method: str = "EMAIL", *recipients: dict[str, str], **fields: Any) -> str:
        asked = {"pack_id": self.pack_id, "distribution_method": method, "recipients": list(recipients)}
        return self.stage.submit("pack_distribution", payload=asked | {"requested_by": self.people.owner_id} | fields)

    def share(self, method: str = "EMAIL", *recipients: dict[str, str], **fields: Any) -> dict[str, Any]:
        job = self.stage.finish(self.submit(method, *recipients, **fields))
        assert job["status"] == "completed", job["error_details"]
        result: dict[str, Any] = job["result"]
        return result

    def fail_mail(self, **fault: Any) -> None:
        self.http.request("PUT", f"{self.ses}/_stand_in/faults", body=json.dumps([fault]))

    def mails(self) -> list[dict[str, Any]]:
        calls = self.http.request("GET", f"{self.ses}/_stand_in/calls").json()["calls"]
        return [{**one["request"], **one["request"]["Content"]["Simple"]} for one in calls]

    def link(self) -> str:
        """Return the path of the link in the last mail."""
        words: list[str] = self.mails()[-1]["Body"]["Text"]["Data"].split()
        return next(word for word in words if "/shared/packs/" in word).removeprefix("https://x.example/api")

    def open(self, path: str, method: str = "GET") -> Any:
        return HttpClient(self.stage)(method, path)


@pytest.fixture
def secret(moto: str, bucket: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Store the key of links, under a name of the test's own."""
    name = f"links-{uuid4().hex[:12]}"
    shared_client("secretsmanager", moto).create_secret(Name=name, SecretString="the key")
    monkeypatch.setenv("COMPLIANCE_LINKS_SECRET", name)
    return name


@pytest.fixture
def sharing(
    people: Workforce,
    stage: Stage,
    services: AwsServices,
    bucket: str,
    moto: str,
    secret: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Sharing]:
    monkeypatch.setenv("COMPLIANCE_PUBLIC_URL", "https://x.example/api/")
    yield (shared := Sharing(people, stage, services, bucket, moto))
    shared.http.clear()


def test_mail_carries_the_pack(sharing: Sharing, db: psycopg.Connection) -> None:
    result = sharing.share("EMAIL", ANN, message="Please check page 3 – thanks.")
    [mail] = sharing.mails()
    assert (mail["Destination"], mail["FromEmailAddress"]) == ({"ToAddresses": [ANN["email"]]}, "us@example.com")
    [attached] = mail["Attachments"]
    assert (attached["FileName"], attached["ContentType"], b64decode(attached["RawContent"])) == (
        "audit-pack-20260301T080000Z.pdf",
        "application/pdf",
        b"%PDF pack",
    )
    assert "Please check page 3 – thanks." in mail["Body"]["Text"]["Data"]
    [found] = rows(db, "pack_distributions", "id", "status", "delivery", "token_hash", "view_count", "recipient_name")
    assert ([str(found[0])], *found[1:]) == (result["distribution_ids"], "SENT", "ATTACHMENT", None, 0, "Ann")
    assert (result["sent"], result["failed"]) == (1, 0)


def test_mail_links_to_a_token_of_which_only_the_hash_is_kept(sharing: Sharing, db: psycopg.Connection) -> None:
    result = sharing.share("SHARED_LINK", ANN, expires_in_days=3)
    [found] = rows(db, "pack_distributions", "id", "token_hash", "shared_link_expires_at", "delivery")
    token = urlsafe_b64encode(hmac.digest(b"the key", str(found[0]).encode(), "sha256")).decode().rstrip("=")
    assert sharing.link() == f"/shared/packs/{token}"
    assert (found[1], found[3]) == (hashlib.sha256(token.encode()).hexdigest(), "LINK")
    row = sharing.stage.db.execute("SELECT created_at FROM signalbox.jobs WHERE job_type = 'pack_distribution'")
    [(created_at,)] = row.fetchall()
    assert (found[2] - created_at).days == 3
    assert result["expires_at"] == found[2].isoformat()


@pytest.mark.parametrize(("size", "delivery"), [(29_000_000, "ATTACHMENT"), (29_000_001, "LINK")])
def test_larger_files_are_sent_as_a_link(sharing: Sharing, db: psycopg.Connection, size: int, delivery: str) -> None:
    db.execute("UPDATE compliance.audit_packs SET file_size_bytes = %s", (size,))
    sharing.share("EMAIL", ANN)
    assert rows(db, "pack_distributions", "delivery", "status") == [(delivery, "SENT")]
    assert ["Attachments" in one for one in sharing.mails()] == [delivery == "ATTACHMENT"]


def test_file_itself_decides_where_the_row_does_not_know_its_size(sharing: Sharing, db: psycopg.Connection) -> None:
    sharing.s3.put_object(Bucket=sharing.bucket, Key=sharing.path, Body=bytes(29_000_001))
    sharing.share("EMAIL", ANN)
    assert rows(db, "pack_distributions", "delivery") == [("LINK",)]


def test_recipient_named_twice_gets_one_mail(sharing: Sharing, db: psycopg.Connection) -> None:
    shouted = {"email": "ANN@client.example"}
    result = sharing.share("EMAIL", ANN, shouted, BOB)
    assert (len(sharing.mails()), result["sent"], len(result["distribution_ids"])) == (2, 2, 2)
    assert sorted(rows(db, "pack_distributions", "recipient_email")) == [(ANN["email"],), (BOB["email"],)]


def test_without_recipients_the_requester_gets_it(sharing: Sharing, db: psycopg.Connection) -> None:
    sharing.share("SHARED_LINK")
    [(email,)] = rows(db, "pack_distributions", "recipient_email")
    assert email == f"owner-{sharing.people.company_id[:8]}@example.com"


def test_requester_is_told_once_all_mails_have_ended(sharing: Sharing, db: psycopg.Connection) -> None:
    job_id = sharing.submit("EMAIL", ANN, {"email": "no address"})
    assert sharing.stage.step(job_id)["status"] == "pending"
    assert sharing.stage.step(job_id)["status"] == "pending"
    assert rows(db, "notifications", "id") == []
    result = sharing.stage.finish(job_id)["result"]
    assert (result["sent"], result["failed"]) == (1, 1)
    [told] = rows(db, "notifications", "user_id", "channel", "severity", "message", "entity_id")
    assert tuple(map(str, told)) == (
        sharing.people.owner_id,
        "IN_APP",
        "INFO",
        "Your audit pack was sent to 1 of 2 recipients.",
        sharing.pack_id,
    )


def test_one_recipient_that_ses_refuses_does_not_stop_the_others(sharing: Sharing, db: psycopg.Connection) -> None:
    sharing.fail_mail(matching=BOB["email"], status=500)
    result = sharing.share("EMAIL", ANN, BOB)
    assert (result["sent"], result["failed"]) == (1, 1)
    assert sorted(rows(db, "pack_distributions", "recipient_email", "status")) == [
        (ANN["email"], "SENT"),
        (BOB["email"], "FAILED"),
    ]


def test_redriven_delivery_is_sent_and_marked(sharing: Sharing, db: psycopg.Connection) -> None:
    sharing.fail_mail(matching=BOB["email"], status=400)
    sharing.share("EMAIL", BOB)
    [letter] = sharing.stage.db.execute("SELECT id::text FROM signalbox.dead_letter_jobs").fetchall()
    sharing.fail_mail(matching="nobody", status=400)
    sharing.stage.operate("redrive", ids=[letter[0]], by="warden")
    sharing.stage.drain()
    assert rows(db, "pack_distributions", "status") == [("SENT",)]


def test_delivery_that_does_not_exist_fails_at_once(stage: Stage) -> None:
    job = stage.step(stage.submit("deliver_pack", payload={"distribution_id": str(uuid4())}))
    assert (job["status"], job["error_details"]["type"]) == ("failed", "Permanent")


@pytest.mark.parametrize("change", ["revoked", "sent"])
def test_revoked_or_sent_delivery_is_not_sent(sharing: Sharing, db: psycopg.Connection, change: str) -> None:
    job_id = sharing.submit("EMAIL", ANN)
    sharing.stage.step(job_id)
    column = {"revoked": "revoked_at = now()", "sent": "status = 'SENT'"}[change]
    db.execute(f"UPDATE compliance.pack_distributions SET {column}")
    assert sharing.stage.finish(job_id)["result"]["sent"] == (change == "sent")
    assert sharing.mails() == []


def test_cancelled_delivery_does_not_keep_the_job_waiting(sharing: Sharing) -> None:
    job_id = sharing.submit("EMAIL", ANN)
    sharing.stage.step(job_id)
    sharing.stage.operate("cancel_jobs", job_type="deliver_pack")
    assert sharing.stage.finish(job_id)["result"]["sent"] == 0


def test_crash_after_the_mail_sends_a_second_one_and_ends(
    sharing: Sharing, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = deliver_pack._send

    def send_and_die(*given: Any) -> str:
        send(*given)
        monkeypatch.setattr(deliver_pack, "_send", send)
        raise ConnectionError

    monkeypatch.setattr(deliver_pack, "_send", send_and_die)
    sharing.share("SHARED_LINK", ANN)
    first, second = sharing.mails()
    assert (first["Body"], rows(db, "pack_distributions", "status")) == (second["Body"], [("SENT",)])


def test_crash_before_the_rows_are_stored_repeats_all(sharing: Sharing, monkeypatch: pytest.MonkeyPatch) -> None:
    make = pack_distribution._job

    def die(*_: object) -> None:
        monkeypatch.setattr(pack_distribution, "_job", make)
        raise ConnectionError

    monkeypatch.setattr(pack_distribution, "_job", die)
    result = sharing.share("EMAIL", ANN)
    assert (result["sent"], len(sharing.mails())) == (1, 1)


def test_changed_secret_leaves_links_that_work(sharing: Sharing) -> None:
    job_id = sharing.submit("SHARED_LINK", ANN)
    sharing.stage.step(job_id)
    name = sharing.stage.app.resources.environ["COMPLIANCE_LINKS_SECRET"]
    shared_client("secretsmanager", sharing.moto).put_secret_value(SecretId=name, SecretString="another key")
    sharing.stage.finish(job_id)
    assert sharing.open(sharing.link()).status == 302


@pytest.mark.parametrize(
    "name",
    ["Eve\r\nBcc: all@x.example", "Eve\u2028Bcc: all@x.example"],
)
def test_a_companys_name_adds_no_header(sharing: Sharing, db: psycopg.Connection, name: str) -> None:
    db.execute("UPDATE compliance.companies SET name = %s", (name,))
    sharing.share("EMAIL", {**ANN, "name": name})
    [mail] = sharing.mails()
    assert len(mail["Subject"]["Data"].splitlines()) == 1
    assert mail["Destination"] == {"ToAddresses": [ANN["email"]]}


@pytest.mark.parametrize(
    "what", ["no pack", "foreign requester", "no file", "no path", "requester without address", "no secret"]
)
def test_what_is_absent_fails_at_once(
    sharing: Sharing, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    fields: dict[str, Any] = {}
    match what:
        case "no pack":
            fields = {"pack_id": str(uuid4())}
        case "foreign requester":
            fields = {"requested_by": Workforce.make(db, name="Other").owner_id, "recipients": [ANN]}
        case "no file":
            fields = {"pack_id": sharing.pack(storage_path="gone.pdf")}
        case "no path":
            fields = {"pack_id": sharing.pack(storage_path=None)}
        case "requester without address":
            db.execute("UPDATE compliance.users SET email = NULL")
        case _:
            monkeypatch.setenv("COMPLIANCE_LINKS_SECRET", "no-such-secret")
    job = sharing.stage.step(sharing.submit("SHARED_LINK", **fields))
    assert (job["status"], job["error_details"]["type"]) == ("failed", "Permanent")
    assert ("no-such-secret" in job["error_details"]["message"]) == (what == "no secret")
    assert rows(db, "pack_distributions", "id") == []


def test_link_leads_to_the_file_and_counts_the_view(sharing: Sharing, db: psycopg.Connection) -> None:
    sharing.share("SHARED_LINK", ANN)
    answer = sharing.open(sharing.link())
    assert (answer.status, answer.headers["cache-control"], answer.headers["referrer-policy"]) == (
        302,
        "no-store",
        "no-referrer",
    )
    address = answer.headers["location"]
    assert "X-Amz-Expires=300" in address
    assert sharing.http.request("GET", address).data == b"%PDF pack"
    [(count, at)] = rows(db, "pack_distributions", "view_count", "last_viewed_at")
    assert (count, at is not None) == (1, True)


def test_views_at_once_are_all_counted(sharing: Sharing, db: psycopg.Connection) -> None:
    sharing.share("SHARED_LINK", ANN)
    link, stages = sharing.link(), [sharing.stage.another() for _ in range(8)]
    answers = at_once(*(lambda one=one: HttpClient(one)("GET", link).status for one in stages))
    assert (answers, rows(db, "pack_distributions", "view_count")) == ([302] * 8, [(8,)])


@pytest.mark.parametrize("change", ["revoked_at = now()", "shared_link_expires_at = now() - interval '1 ms'"])
def test_expired_or_revoked_link_is_gone(sharing: Sharing, db: psycopg.Connection, change: str) -> None:
    sharing.share("SHARED_LINK", ANN)
    db.execute(f"UPDATE compliance.pack_distributions SET {change}")
    answer = sharing.open(sharing.link())
    assert (answer.status, answer.headers["content-type"]) == (410, "application/problem+json")
    assert (answer.body["status"], rows(db, "pack_distributions", "view_count")) == (410, [(0,)])


def test_link_of_a_deleted_company_is_gone(sharing: Sharing, db: psycopg.Connection) -> None:
    sharing.share("SHARED_LINK", ANN)
    db.execute("UPDATE compliance.companies SET deleted_at = now()")
    assert sharing.open(sharing.link()).status == 410


@pytest.mark.parametrize(
    "token", ["x", "a" * 9000, quote("\0"), quote("ö🦊"), "%ff", "..", "\ud800", "a%2Fb", "%27%20OR"]
)
def test_unknown_token_is_not_found(stage: Stage, token: str) -> None:
    answer = HttpClient(stage)("GET", f"/shared/packs/{token}")
    assert (answer.status, answer.headers["content-type"]) == (404, "application/problem+json")


@pytest.mark.parametrize("method", ["HEAD", "POST", "DELETE"])
def test_link_takes_no_other_method(sharing: Sharing, db: psycopg.Connection, method: str) -> None:
    sharing.share("SHARED_LINK", ANN)
    assert sharing.open(sharing.link(), method).status == 404
    assert rows(db, "pack_distributions", "view_count") == [(0,)]
