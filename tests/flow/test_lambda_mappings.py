"""SQS event source mappings give functions their batches, and delete or return the messages."""

from __future__ import annotations

import json
import queue
from typing import TYPE_CHECKING, Any

import pytest

from signalbox_laptop.event_sources.sqs_event import failed_ids
from signalbox_laptop.lambda_runtime.invocation import Result

if TYPE_CHECKING:
    from tests.support.lambda_stand import Stand, Told

pytest_plugins = ["tests.support.lambda_stand"]

PATIENCE = 20


def send(stand: Stand, url: str, *bodies: str, **options: Any) -> list[str]:
    sqs = stand.client("sqs")
    return [sqs.send_message(QueueUrl=url, MessageBody=body, **options)["MessageId"] for body in bodies]


def bodies(told: Told) -> list[str]:
    return [record["body"] for record in told.event["Records"]]


def left(stand: Stand, url: str) -> tuple[int, int]:
    """Count visible and invisible messages."""
    counts = stand.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    return int(counts["ApproximateNumberOfMessages"]), int(counts["ApproximateNumberOfMessagesNotVisible"])


def obey(stand: Stand, **order: Any) -> Told:
    told = stand.puppeteer.next()
    told.reply(**order)
    return told


def test_a_batch_that_succeeds_is_deleted(stand: Stand) -> None:
    name = stand.deploy("puppet")
    url, arn = stand.create_queue()
    send(stand, url, "a", "b", "c")
    stand.map(arn, name, BatchSize=10)
    told = obey(stand, **{"return": "anything"})
    assert bodies(told) == ["a", "b", "c"]
    assert stand.service.idle(PATIENCE)
    assert left(stand, url) == (0, 0)


def test_a_record_has_lambdas_shape(stand: Stand) -> None:
    name = stand.deploy("puppet")
    url, arn = stand.create_queue()
    attributes = {
        "colour": {"DataType": "String", "StringValue": "green"},
        "raw": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
    }
    [message_id] = send(stand, url, "body", MessageAttributes=attributes, MessageGroupId="tenant")
    stand.map(arn, name)
    [record] = obey(stand, **{"return": None}).event["Records"]
    assert stand.service.idle(PATIENCE)
    own = record.pop("attributes")
    assert record.pop("receiptHandle")
    assert record == {
        "messageId": message_id,
        "body": "body",
        "messageAttributes": {
            "colour": {
                "stringValue": "green",
                "stringListValues": [],
                "binaryListValues": [],
                "dataType": "String",
            },
            "raw": {"binaryValue": "AP8=", "stringListValues": [], "binaryListValues": [], "dataType": "Binary"},
        },
        "md5OfBody": "841a2d689ad86bd1611447453c22c6fc",
        "eventSource": "aws:sqs",
        "eventSourceARN": arn,
        "awsRegion": "us-east-1",
    }
    assert own["ApproximateReceiveCount"] == "1"
    assert own["MessageGroupId"] == "tenant"
    assert {"SentTimestamp", "SenderId", "ApproximateFirstReceiveTimestamp"} <= set(own)


def test_a_batch_holds_no_more_than_its_size(stand: Stand) -> None:
    name = stand.deploy("puppet")
    url, arn = stand.create_queue()
    send(stand, url, *"abcde")
    stand.map(arn, name, BatchSize=2)
    sizes = [len(bodies(obey(stand, **{"return": None}))) for _ in range(3)]
    assert sorted(sizes) == [1, 2, 2]
    assert stand.service.idle(PATIENCE)


def test_a_window_gathers_more_than_one_receive_brings(stand: Stand) -> None:
    name = stand.deploy("puppet")
    url, arn = stand.create_queue()
    send(stand, url, *(str(number) for number in range(25)))
    stand.map(arn, name, BatchSize=100, MaximumBatchingWindowInSeconds=1)
    assert len(bodies(obey(stand, **{"return": None}))) == 25
    assert stand.service.idle(PATIENCE)
    assert left(stand, url) == (0, 0)


def test_a_batch_that_fails_returns_when_its_visibility_time_out_has_passed(stand: Stand) -> None:
    name = stand.deploy("puppet")
    url, arn = stand.create_queue(VisibilityTimeout="1")
    send(stand, url, "again")
    stand.map(arn, name)
    first = obey(stand, **{"raise": "no luck"})
    second = obey(stand, **{"return": None})
    assert bodies(first) == bodies(second) == ["again"]
    assert second.event["Records"][0]["attributes"]["ApproximateReceiveCount"] == "2"
    assert stand.service.idle(PATIENCE)
    assert left(stand, url) == (0, 0)


def test_what_failed_too_often_goes_to_the_dead_letter_queue(stand: Stand) -> None:
    name = stand.deploy("writer", handler="writer.nothing_of_the_kind")
    dead_url, dead_arn = stand.create_queue()
    redrive = json.dumps({"deadLetterTargetArn": dead_arn, "maxReceiveCount": 2})
    url, arn = stand.create_queue(VisibilityTimeout="0", RedrivePolicy=redrive)
    stand.map(arn, name)
    send(stand, url, "poison")
    [dead] = stand.receive(dead_url)
    assert dead["Body"] == "poison"


def test_only_the_messages_that_the_function_names_stay(stand: Stand) -> None:
    name = stand.deploy("puppet")
    url, arn = stand.create_queue()
    ids = send(stand, url, "good", "bad", "better")
    stand.map(arn, name, FunctionResponseTypes=["ReportBatchItemFailures"])
    obey(stand, **{"return": {"batchItemFailures": [{"itemIdentifier": ids[1]}]}})
    assert stand.service.idle(PATIENCE)
    assert left(stand, url) == (0, 1)


def test_without_leave_to_report_failures_the_answer_means_nothing(stand: Stand) -> None:
    name = stand.deploy("puppet")
    url, arn = stand.create_queue()
    ids = send(stand, url, "message")
    stand.map(arn, name)
    obey(stand, **{"return": {"batchItemFailures": [{"itemIdentifier": ids[0]}]}})
    assert stand.service.idle(PATIENCE)
    assert left(stand, url) == (0, 0)


@pytest.mark.parametrize(
    ("answer", "failed"),
    [
        ('{"batchItemFailures": []}', set()),
        ('{"batchItemFailures": null}', set()),
        ("{}", set()),
        ("null", set()),
        ('{"batchItemFailures": [{"itemIdentifier": "b"}]}', {"b"}),
        ('{"batchItemFailures": [{"itemIdentifier": "b"}, {"itemIdentifier": "b"}]}', {"b"}),
        ('{"batchItemFailures": [{"itemIdentifier": ""}]}', {"a", "b"}),
        ('{"batchItemFailures": [{"itemIdentifier": null}]}', {"a", "b"}),
        ('{"batchItemFailures": [{"itemIdentifier": 7}]}', {"a", "b"}),
        ('{"batchItemFailures": [{"identifier": "b"}]}', {"a", "b"}),
        ('{"batchItemFailures": [{"itemIdentifier": "stranger"}]}', {"a", "b"}),
        ('{"batchItemFailures": ["b"]}', {"a", "b"}),
        ('{"batchItemFailures": "b"}', {"a", "b"}),
        ('"all well"', {"a", "b"}),
        ("no json", {"a", "b"}),
    ],
)
def test_what_an_answer_means_for_its_messages(answer: str, failed: set[str]) -> None:
    result = Result(
        request_id="r", payload=answer.encode(), executed_version="$LATEST", function_error=None, log_tail=b""
    )
    assert failed_ids(result, ["a", "b"], partial=True) == failed


def test_no_more_batches_run_at_once_than_the_mapping_allows(stand: Stand) -> None:
    name = stand.deploy("puppet")
    url, arn = stand.create_queue()
    send(stand, url, *"abcdef")
    stand.map(arn, name, BatchSize=1, ScalingConfig={"MaximumConcurrency": 2})
    under_way = [stand.puppeteer.next(), stand.puppeteer.next()]
    with pytest.raises(queue.Empty):
        stand.puppeteer.next(timeout=0.3)
    seen = []
    for _ in range(6):
        told = under_way.pop(0)
        seen += bodies(told)
        told.reply(**{"return": None})
        if len(seen) + len(under_way) < 6:
            under_way.append(stand.puppeteer.next())
    assert sorted(seen) == list("abcdef")
    assert stand.service.idle(PATIENCE)


def test_a_throttled_batch_returns_soon_and_is_not_lost(stand: Stand) -> None:
    name = stand.deploy("puppet")
    stand.lambda_.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=1)
    url, arn = stand.create_queue(VisibilityTimeout="600")
    send(stand, url, "a", "b", "c")
    stand.map(arn, name, BatchSize=1)
    seen = [bodies(obey(stand, **{"return": None}))[0] for _ in range(3)]
    assert sorted(seen) == ["a", "b", "c"]
    assert stand.service.idle(PATIENCE)
    assert left(stand, url) == (0, 0)


def test_a_mapping_is_followed_as_it_is_disabled_enabled_and_deleted(stand: Stand) -> None:
    name = stand.deploy("puppet")
    url, arn = stand.create_queue()
    uuid = stand.map(arn, name, Enabled=False)
    stand.service.idle(PATIENCE)
    send(stand, url, "message")
    assert left(stand, url) == (1, 0)
    stand.lambda_.update_event_source_mapping(UUID=uuid, Enabled=True)
    assert bodies(obey(stand, **{"return": None})) == ["message"]
    assert stand.service.idle(PATIENCE)
    count = stand.service.status()["mappings"]
    stand.lambda_.update_event_source_mapping(UUID=uuid, Enabled=False)
    assert stand.service.idle(PATIENCE)
    assert stand.service.status()["mappings"] == count - 1


def test_two_mappings_of_one_function_are_both_served(stand: Stand) -> None:
    name = stand.deploy("puppet")
    queues = [stand.create_queue() for _ in range(2)]
    for url, arn in queues:
        stand.map(arn, name)
        send(stand, url, "message")
    sources = {obey(stand, **{"return": None}).event["Records"][0]["eventSourceARN"] for _ in range(2)}
    assert sources == {arn for _, arn in queues}
    assert stand.service.idle(PATIENCE)


def test_idle_waits_for_what_lies_in_a_mapped_queue(stand: Stand) -> None:
    name = stand.deploy("puppet")
    url, arn = stand.create_queue()
    stand.map(arn, name, BatchSize=1, ScalingConfig={"MaximumConcurrency": 2})
    send(stand, url, *"abc")
    told = [stand.puppeteer.next(), stand.puppeteer.next()]
    assert not stand.service.idle(0.2)
    for one in told:
        one.reply(**{"return": None})
    obey(stand, **{"return": None})
    assert stand.service.idle(PATIENCE)


def test_moto_itself_never_invokes_for_a_mapping(stand: Stand, stand_moto: str) -> None:
    """Moto without our switch would try Docker and keep the message waiting."""
    from contextlib import closing

    from tests.support.lambda_stand import client

    name = stand.deploy("puppet")
    url, arn = stand.create_queue()
    uuid = stand.map(arn, name)
    with closing(client("sqs", stand_moto)) as moto:
        moto.send_message(QueueUrl=url.replace(stand.endpoint, stand_moto), MessageBody="message")
    told = stand.puppeteer.next()
    assert told.event["Records"][0]["attributes"]["ApproximateReceiveCount"] == "1"
    told.reply(**{"return": None})
    assert stand.service.idle(PATIENCE)
    assert stand.puppeteer.none_waits()
    assert stand.lambda_.get_event_source_mapping(UUID=uuid)["State"] == "Enabled"
