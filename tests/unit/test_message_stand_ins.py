"""SES's and SNS's stand-ins take every message, keep it, and fail as told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
import urllib3
from botocore.exceptions import ClientError, ConnectionClosedError

from signalbox_laptop.stand_ins.message_stand_in import MessageStandIn
from signalbox_laptop.stand_ins.ses import SesStandIn
from signalbox_laptop.stand_ins.sns import SnsStandIn
from tests.support.stand_ins import caller, calls_of, instruct, refused

NUMBER = "+15550000001"
TOPIC = "arn:aws:sns:us-east-1:123456789012:people"
MAIL = {
    "FromEmailAddress": "box@signalbox.example",
    "Destination": {"ToAddresses": ["grün@x.example"]},
    "Content": {"Simple": {"Subject": {"Data": "Grün"}, "Body": {"Text": {"Data": "It is signed."}}}},
}


def started(stand_in: MessageStandIn) -> Iterator[str]:
    stand_in.start()
    yield stand_in.url
    stand_in.stop()


@pytest.fixture
def ses_url() -> Iterator[str]:
    yield from started(SesStandIn())


@pytest.fixture
def sns_url() -> Iterator[str]:
    yield from started(SnsStandIn())


@pytest.fixture
def ses(ses_url: str) -> Any:
    return caller("sesv2", ses_url)


@pytest.fixture
def sns(sns_url: str) -> Any:
    return caller("sns", sns_url)


def test_a_mail_is_taken_and_kept(ses_url: str, ses: Any) -> None:
    UUID(ses.send_email(**MAIL)["MessageId"])
    [call] = calls_of(ses_url)
    assert sorted(call) == ["at", "name", "request"]
    assert (call["name"], call["request"]) == ("SendEmail", MAIL)


def test_a_publication_is_taken_and_kept_as_boto3_was_given_it(sns_url: str, sns: Any) -> None:
    asked = {
        "TopicArn": TOPIC,
        "Message": "100 % & ü.member.1",
        "Subject": "",
        "MessageAttributes": {
            "tenant": {"DataType": "String", "StringValue": "acme"},
            "place.member.1": {"DataType": "Number", "StringValue": "7"},
        },
    }
    UUID(sns.publish(**asked)["MessageId"])
    sns.publish(PhoneNumber=NUMBER, Message="m")
    calls = [(call["name"], call["request"]) for call in calls_of(sns_url)]
    assert calls == [("Publish", asked), ("Publish", {"PhoneNumber": NUMBER, "Message": "m"})]


def test_each_entry_of_a_batch_gets_an_id(sns_url: str, sns: Any) -> None:
    entries = [{"Id": f"<{number}>", "Message": "m"} for number in range(10)]
    answer = sns.publish_batch(TopicArn=TOPIC, PublishBatchRequestEntries=entries)
    assert [one["Id"] for one in answer["Successful"]] == [one["Id"] for one in entries]
    assert len({one["MessageId"] for one in answer["Successful"]}) == 10
    [call] = calls_of(sns_url)
    expected = {"TopicArn": TOPIC, "PublishBatchRequestEntries": entries}
    assert (call["name"], call["request"]) == ("PublishBatch", expected)


@pytest.mark.parametrize(
    ("status", "mail", "publication"),
    [
        (400, "BadRequestException", "InvalidParameter"),
        (429, "TooManyRequestsException", "Throttling"),
        (500, "InternalFailure", "InternalError"),
        (503, "InternalFailure", "InternalError"),
    ],
)
def test_a_fault_is_an_error_of_the_service(
    ses_url: str, ses: Any, sns_url: str, sns: Any, status: int, mail: str, publication: str
) -> None:
    for url in (ses_url, sns_url):
        instruct(url, "faults", [{"status": status, "times": 1}])
    with pytest.raises(ClientError) as of_ses:
        ses.send_email(**MAIL)
    with pytest.raises(ClientError) as of_sns:
        sns.publish(PhoneNumber=NUMBER, Message="m")
    answers = [caught.value.response for caught in (of_ses, of_sns)]
    assert [answer["Error"]["Code"] for answer in answers] == [mail, publication]
    assert [answer["ResponseMetadata"]["HTTPStatusCode"] for answer in answers] == [status, status]
    assert ses.send_email(**MAIL)["MessageId"]
    assert sns.publish(PhoneNumber=NUMBER, Message="m")["MessageId"]


def test_a_fault_meets_what_it_looks_for_in_the_request(sns_url: str, sns: Any, ses_url: str, ses: Any) -> None:
    instruct(sns_url, "faults", [{"matching": NUMBER}])
    assert sns.publish(TopicArn=TOPIC, Message="m")["MessageId"]
    with pytest.raises(ClientError):
        sns.publish(PhoneNumber=NUMBER, Message="m")
    instruct(sns_url, "faults", [])
    assert sns.publish(PhoneNumber=NUMBER, Message="m")["MessageId"]
    instruct(ses_url, "faults", [{"matching": "grün@x", "lost": True}])
    with pytest.raises(ConnectionClosedError):
        ses.send_email(**MAIL)
    assert len(calls_of(ses_url)) == 1


def test_what_sends_no_message_is_refused_without_moto(ses: Any, sns: Any) -> None:
    with pytest.raises(ClientError, match="does not know"):
        ses.list_email_identities()
    with pytest.raises(ClientError, match="does not know"):
        sns.list_topics()


@pytest.mark.parametrize("body", [b"Action=Publish&A=1&A.b=2", b"Action=PublishBatch", b"Action=Publish&A.entry.1=2"])
def test_a_rubbish_publication_is_refused(sns_url: str, body: bytes) -> None:
    answer = urllib3.request("POST", sns_url, body=body)
    assert (answer.status, b"<Code>InvalidParameter</Code>" in answer.data) == (400, True)


def test_an_instruction_that_makes_no_sense_is_refused(sns_url: str, ses_url: str) -> None:
    assert "faults refused: 0.stat: Unexpected keyword argument" in refused(ses_url, "faults", b'[{"stat": 500}]')
    assert "0.status: Input should be greater than or equal to 400" in refused(sns_url, "faults", b'[{"status": 200}]')
    assert urllib3.request("POST", f"{ses_url}/v2/email/outbound-emails", body=b"{").status == 400
