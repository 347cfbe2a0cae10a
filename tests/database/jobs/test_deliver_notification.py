"""Notifications go by their channel, avoid duplicates, and tell AWS's errors apart by code."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl

import boto3
import psycopg
import pytest

from signalbox.errors import JobRefused
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.rows import select
from signalbox.testing.stage import Stage
from signalbox.testing.stand_in import Request, Response, StandIn
from tests.support.lost_session import lose_session

SENDER = "box@signalbox.example"
TOPIC = "arn:aws:sns:us-east-1:123456789012:people"
OPERATORS = "arn:aws:sns:us-east-1:123456789012:operators"
SENT = """<PublishResponse><PublishResult><MessageId>{}</MessageId></PublishResult></PublishResponse>"""
REFUSED = "<ErrorResponse><Error><Code>{}</Code><Message>about a@b.example</Message></Error></ErrorResponse>"


class Messengers(StandIn):
    """Serve SES and SNS on one socket, keep requests, and refuse with the codes in `refusals`."""

    def __init__(self) -> None:
        self.mails: deque[dict[str, Any]] = deque()
        self.published: deque[dict[str, str]] = deque()
        self.refusals: deque[str] = deque()
        super().__init__()

    def answer(self, request: Request) -> Response:
        return self._mail(request) if request.path.startswith("/v2/email") else self._publish(request)

    def _mail(self, request: Request) -> Response:
        if code := self._refusal():
            body = json.dumps({"message": "about a@b.example"}).encode()
            return Response(400, body, [("x-amzn-ErrorType", code)])
        self.mails.append(json.loads(request.body))
        return Response(200, json.dumps({"MessageId": f"mail-{len(self.mails)}"}).encode())

    def _publish(self, request: Request) -> Response:
        if code := self._refusal():
            return Response(400, REFUSED.format(code).encode())
        self.published.append(dict(parse_qsl(request.body.decode())))
        return Response(200, SENT.format(f"sns-{len(self.published)}").encode())

    def _refusal(self) -> str:
        return self.refusals.popleft() if self.refusals else ""


@pytest.fixture
def messengers(invokes: AwsStandIn, monkeypatch: pytest.MonkeyPatch) -> Iterator[Messengers]:
    with Messengers() as messengers:
        monkeypatch.setenv("AWS_ENDPOINT_URL_SNS", messengers.url)
        monkeypatch.setenv("AWS_ENDPOINT_URL_SESV2", messengers.url)
        yield messengers


@pytest.fixture
def stage(stage: Stage, messengers: Messengers) -> Stage:
    told = {"sender_address": SENDER, "notifications_topic_arn": TOPIC, "operators_topic_arn": OPERATORS}
    return stage.another(**told)


def submit(stage: Stage, channel: str, *recipients: str, **fields: Any) -> str:
    payload = {"channel": channel, "recipients": list(recipients), "body": "It is signed."} | fields
    return stage.submit("deliver_notification", payload=payload, tenant="acme")


def deliver(stage: Stage, channel: str, *recipients: str, **fields: Any) -> dict[str, Any]:
    """Return the job after its first attempt."""
    job_id = submit(stage, channel, *recipients, **fields)
    stage.work(job_id)
    return stage.job(job_id)


def go_on(stage: Stage, job: dict[str, Any]) -> dict[str, Any]:
    return stage.step(str(job["id"]))


def test_a_mail_goes_to_all_its_recipients_at_once(stage: Stage, messengers: Messengers) -> None:
    job = deliver(stage, "email", "a@x.example", "b@y.example", subject="Grün", html="<p>It</p>", notification_id="n-1")
    assert (job["status"], job["result"]) == ("completed", {"channel": "email", "message_ids": ["mail-1"]})
    assert job["subject_id"] == "n-1"
    [mail] = messengers.mails
    assert (mail["FromEmailAddress"], mail["Destination"]) == (SENDER, {"ToAddresses": ["a@x.example", "b@y.example"]})
    content = mail["Content"]["Simple"]
    assert content["Subject"] == {"Data": "Grün", "Charset": "UTF-8"}
    assert (content["Body"]["Text"]["Data"], content["Body"]["Html"]["Data"]) == ("It is signed.", "<p>It</p>")
    assert content["Headers"] == [{"Name": "X-Signalbox-Notification-Id", "Value": "n-1"}]


def test_mail_is_taken_by_the_stand_in_for_aws(stage: Stage, moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_SESV2", moto)
    assert deliver(stage, "email", "a@x.example", subject="s")["error_details"]["message"].endswith("MessageRejected")
    boto3.client("sesv2").create_email_identity(EmailIdentity=SENDER)
    assert deliver(stage, "email", "a@x.example", subject="s")["status"] == "completed"


def test_a_message_reaches_the_subscribers_of_the_stacks_topic(
    stage: Stage, moto: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_SNS", moto)
    sns, sqs = boto3.client("sns"), boto3.client("sqs", endpoint_url=moto)
    arn = sns.create_topic(Name="people")["TopicArn"]
    queue = sqs.create_queue(QueueName="people-mail")["QueueUrl"]
    sns.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=queue.replace(moto, "").replace("/", ":").replace(
        ":123456789012:", "arn:aws:sqs:us-east-1:123456789012:"))  # fmt: skip
    assert arn == TOPIC
    assert deliver(stage, "topic", subject="Signed")["status"] == "completed"
    [message] = sqs.receive_message(QueueUrl=queue)["Messages"]
    told = json.loads(message["Body"])
    assert (told["Subject"], told["Message"]) == ("Signed", "It is signed.")
    assert told["MessageAttributes"]["tenant"] == {"Type": "String", "Value": "acme"}


@pytest.mark.parametrize("topics", [[OPERATORS], [TOPIC, OPERATORS], [f"{TOPIC}.fifo"]])
def test_a_job_publishes_to_the_notifications_topic_only(
    stage: Stage, messengers: Messengers, topics: list[str]
) -> None:
    job = deliver(stage, "topic", *topics)
    assert (job["status"], list(messengers.published)) == ("failed", [])
    assert job["error_details"]["message"] == (
        f"topic {topics[-1]} is not open to jobs in this stack: leave recipients out, or name {TOPIC} "
        "(SIGNALBOX_NOTIFICATIONS_TOPIC_ARN)"
    )
    assert stage.dead_letter(job["id"])["failure_reason"] == "permanent"


def test_the_notifications_topic_may_be_named(stage: Stage, messengers: Messengers) -> None:
    assert deliver(stage, "topic", TOPIC)["status"] == "completed"
    assert [asked["TopicArn"] for asked in messengers.published] == [TOPIC]


def test_a_topic_that_keeps_the_order_gets_the_same_key_each_time(stage: Stage, messengers: Messengers) -> None:
    messengers.refusals.extend(["InternalError"])
    stage = stage.another(notifications_topic_arn=f"{TOPIC}.fifo")
    job = go_on(stage, deliver(stage, "topic"))
    [asked] = messengers.published
    assert job["status"] == "completed"
    assert asked["MessageDeduplicationId"] == f"{job['id']}-0"
    assert asked["MessageGroupId"] == "deliver_notification"


def test_a_subject_that_sns_does_not_take_is_made_to_fit(stage: Stage, messengers: Messengers) -> None:
    deliver(stage, "topic", subject="Grün " + "x" * 200)
    [asked] = messengers.published
    assert asked["Subject"] == ("Gr?n " + "x" * 200)[:100]


def test_failed_number_makes_no_other_number_notified_twice(stage: Stage, messengers: Messengers) -> None:
    numbers = ["+15550000001", "+15550000002", "+15550000003"]
    job = deliver(stage, "sms", *numbers)
    assert (job["status"], job["progress_message"]) == ("pending", "1 of 3 sent")
    messengers.refusals.append("InternalError")
    for _ in range(3):
        job = go_on(stage, job)
    assert (job["status"], job["result"]["message_ids"]) == ("completed", ["sns-1", "sns-2", "sns-3"])
    assert [asked["PhoneNumber"] for asked in messengers.published] == numbers


def notifications(db: psycopg.Connection) -> list[dict[str, Any]]:
    return select(db, "SELECT * FROM signalbox.notifications ORDER BY recipient")


def test_in_the_application_each_recipient_finds_a_row(stage: Stage, db: psycopg.Connection) -> None:
    job = deliver(stage, "in_app", "user-1", "user-2", subject="Signed", notification_id="n-1")
    assert (job["status"], job["result"]) == ("completed", {"channel": "in_app", "new": 2})
    first, second = notifications(db)
    assert (first["recipient"], second["recipient"]) == ("user-1", "user-2")
    assert (first["tenant"], first["subject"], first["body"]) == ("acme", "Signed", "It is signed.")
    assert (first["job_id"], first["notification_id"], first["read_at"]) == (job["id"], "n-1", None)


def test_worker_lost_after_sending_notifies_nobody_twice(
    stage: Stage, db: psycopg.Connection, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = submit(stage, "in_app", "user-1")
    known = stage.job_types.find("deliver_notification")
    once = known.perform

    def be_lost(context: Any) -> Any:
        once(context)
        lose_session(dsn)
        raise ConnectionResetError

    monkeypatch.setattr(known, "perform", be_lost)
    stage.work(job_id)
    assert (stage.job(job_id)["status"], len(notifications(db))) == ("pending", 1)
    monkeypatch.setattr(known, "perform", once)
    job = go_on(stage, stage.job(job_id))
    assert (job["status"], job["result"]["new"], len(notifications(db))) == ("completed", 0, 1)


@pytest.mark.parametrize("code", ["MessageRejected", "BadRequestException", "MailFromDomainNotVerifiedException"])
def test_a_mail_that_ses_would_refuse_again_is_a_dead_letter(stage: Stage, messengers: Messengers, code: str) -> None:
    messengers.refusals.append(code)
    job = deliver(stage, "email", "a@b.example", subject="s")
    assert (job["status"], job["error_details"]["message"]) == ("failed", f"SES: AWS refuses it, {code}")
    assert stage.dead_letter(job["id"])["failure_reason"] == "permanent"


@pytest.mark.parametrize("code", ["InvalidParameter", "NotFound", "EndpointDisabled", "AuthorizationError"])
def test_a_message_that_sns_would_refuse_again_is_a_dead_letter(
    stage: Stage, messengers: Messengers, code: str
) -> None:
    messengers.refusals.append(code)
    assert deliver(stage, "sms", "+15550000001")["status"] == "failed"


@pytest.mark.parametrize("code", ["TooManyRequestsException", "LimitExceededException"])
def test_throttling_spends_no_attempt(stage: Stage, messengers: Messengers, code: str) -> None:
    messengers.refusals.extend([code] * 4)  # the AWS client tries four times by itself
    job = deliver(stage, "email", "a@b.example", subject="s")
    assert (job["status"], job["attempts"], job["error_details"]["type"]) == ("pending", 0, "RateLimited")
    assert stage.attempts(job["id"])[0]["status"] == "throttled"


@pytest.mark.parametrize("code", ["SendingPausedException", "SomethingNew"])
def test_any_other_error_of_aws_may_pass(stage: Stage, messengers: Messengers, code: str) -> None:
    messengers.refusals.append(code)
    job = deliver(stage, "email", "a@b.example", subject="s")
    assert (job["status"], job["attempts"], job["error_details"]["type"]) == ("pending", 1, "Transient")
    assert "b.example" not in json.dumps(job["error_details"])
    assert go_on(stage, job)["status"] == "completed"


def test_a_stack_without_a_sender_or_a_topic_says_so(stage: Stage, messengers: Messengers) -> None:
    stage = stage.another(sender_address="", notifications_topic_arn="", operators_topic_arn="")
    mail, topic = deliver(stage, "email", "a@b.example", subject="s"), deliver(stage, "topic")
    assert (mail["status"], topic["status"]) == ("failed", "failed")
    assert "SIGNALBOX_SENDER_ADDRESS" in mail["error_details"]["message"]
    assert "SIGNALBOX_NOTIFICATIONS_TOPIC_ARN" in topic["error_details"]["message"]


@pytest.mark.parametrize(
    ("channel", "recipients", "fields", "words"),
    [
        ("fax", ["1"], {}, "field 'channel'"),
        ("email", [], {"subject": "s"}, "field 'recipients': nobody is named"),
        ("email", ["a@b.example"], {}, "field 'subject': a mail needs one"),
        ("email", ["a@b.example\r\nBcc: c@d.example"], {"subject": "s"}, "number 1 is not a mail address"),
        ("email", ["a@b.example", "nobody"], {"subject": "s"}, "field 'recipients': number 2 is not a mail address"),
        ("email", ["a@b.example"] * 51, {"subject": "s"}, "email takes at most 50 a job; submit several"),
        ("email", ["a@b.example"], {"subject": "s\r\nBcc: c@d.example"}, "field 'subject'"),
        ("sms", ["0555"], {}, "field 'recipients': number 1 is not a number such as"),
        ("topic", ["people"], {}, "field 'recipients': number 1 is not a topic's ARN"),
        ("sms", ["+15550000001"], {"html": "<p>"}, "field 'html': only a mail can have one"),
        ("in_app", ["user-1"], {"body": ""}, "field 'body'"),
    ],
)  # fmt: skip
def test_impossible_notification_is_refused_at_its_submit(
    stage: Stage, channel: str, recipients: list[str], fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(JobRefused) as caught:
        submit(stage, channel, *recipients, **fields)
    assert words in str(caught.value)
