"""Asynchronous invocations are retried, throttled and aged as in Lambda, and their outcomes sent on."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from signalbox_laptop.lambda_api.errors import FunctionUnknown
from signalbox_laptop.lambda_control.function import EventConfig

if TYPE_CHECKING:
    from tests.support.lambda_stand import Stand

    OwnStand = Callable[..., Stand]

pytest_plugins = ["tests.support.lambda_stand"]


def enqueue(stand: Stand, name: str, event: Any = None) -> str:
    answer = stand.invoke(name, event, InvocationType="Event")
    assert answer["StatusCode"] == 202
    assert answer["Payload"].read() == b""
    return answer["ResponseMetadata"]["RequestId"]


def count_messages(stand: Stand, url: str) -> int:
    name = "ApproximateNumberOfMessages"
    held = stand.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"]
    return int(held[name])


def records(stand: Stand, url: str) -> list[dict[str, Any]]:
    return [json.loads(message["Body"]) for message in stand.receive(url)]


def test_an_event_is_accepted_before_it_runs(stand: Stand) -> None:
    name = stand.deploy("puppet")
    request_id = enqueue(stand, name, {"a": 1})
    told = stand.puppeteer.next()
    assert (told.event, told.said["request_id"]) == ({"a": 1}, request_id)
    assert not stand.service.idle(0)
    told.reply(**{"return": None})
    assert stand.service.idle(20)


def test_failed_event_is_retried_twice_under_the_same_request_id(stand: Stand) -> None:
    name = stand.deploy("puppet")
    request_id = enqueue(stand, name)
    for attempt in range(3):
        told = stand.puppeteer.next()
        told.reply(**{"raise": f"attempt {attempt}"})
        assert told.said["request_id"] == request_id
    assert stand.service.idle(20)
    assert stand.puppeteer.none_waits()


def test_an_event_that_succeeds_at_last_is_no_failure(stand: Stand) -> None:
    name = stand.deploy("puppet")
    url, arn = stand.create_queue()
    stand.lambda_.put_function_event_invoke_config(
        FunctionName=name, DestinationConfig={"OnFailure": {"Destination": arn}}
    )
    enqueue(stand, name, "please")
    stand.puppeteer.next().reply(**{"raise": "not yet"})
    stand.puppeteer.next().reply(**{"return": {"done": True}})
    assert stand.service.idle(20)
    assert stand.puppeteer.none_waits()
    assert count_messages(stand, url) == 0


def test_the_failure_destination_gets_lambdas_record(stand: Stand) -> None:
    name = stand.deploy("writer")
    url, arn = stand.create_queue()
    stand.lambda_.put_function_event_invoke_config(
        FunctionName=name, MaximumRetryAttempts=1, DestinationConfig={"OnFailure": {"Destination": arn}}
    )
    request_id = enqueue(stand, name, {"raise": "no luck"})
    assert stand.service.idle(20)
    [record] = records(stand, url)
    timestamp = record.pop("timestamp")
    error = record.pop("responsePayload")
    assert timestamp.endswith("Z")
    assert (error["errorType"], error["errorMessage"]) == ("RuntimeError", "no luck")
    assert record == {
        "version": "1.0",
        "requestContext": {
            "requestId": request_id,
            "functionArn": f"arn:aws:lambda:us-east-1:123456789012:function:{name}:$LATEST",
            "condition": "RetriesExhausted",
            "approximateInvokeCount": 2,
        },
        "requestPayload": {"raise": "no luck"},
        "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
    }


def test_a_destination_that_is_gone_is_counted_and_hurts_nothing(stand: Stand) -> None:
    name = stand.deploy("writer")
    before = stand.service.status()["destinations_failed"]
    stand.lambda_.put_function_event_invoke_config(
        FunctionName=name,
        MaximumRetryAttempts=0,
        DestinationConfig={"OnFailure": {"Destination": "arn:aws:sqs:us-east-1:123456789012:gone"}},
    )
    enqueue(stand, name, {"raise": "no luck"})
    assert stand.service.idle(20)
    assert stand.service.status()["destinations_failed"] == before + 1


def test_a_throttled_event_waits_without_spending_an_attempt(stand: Stand) -> None:
    name = stand.deploy("puppet")
    stand.lambda_.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=1)
    stand.lambda_.put_function_event_invoke_config(FunctionName=name, MaximumRetryAttempts=0)
    enqueue(stand, name, "first")
    first = stand.puppeteer.next()
    enqueue(stand, name, "second")
    assert not stand.service.idle(0.3)
    assert stand.puppeteer.none_waits()
    first.reply(**{"return": None})
    second = stand.puppeteer.next()
    assert {first.event, second.event} == {"first", "second"}
    second.reply(**{"return": None})
    assert stand.service.idle(20)


def test_the_configuration_that_was_put_last_counts(stand: Stand) -> None:
    name = stand.deploy("echo")
    assert stand.service.function(name).event_config == EventConfig(retries=2, maximum_age=21_600)
    for retries in (0, 1):
        stand.lambda_.put_function_event_invoke_config(FunctionName=name, MaximumRetryAttempts=retries)
        assert stand.service.function(name).event_config.retries == retries


def test_an_event_that_grew_too_old_is_not_tried_again(own_stand: OwnStand) -> None:
    from tests.support.lambda_stand import client

    stand = own_stand(retry_delays=(1.1, 1.1))
    name = stand.deploy("puppet")
    url, arn = stand.create_queue()
    with closing(client("lambda", stand.endpoint, parameter_validation=False)) as unchecked:
        # A minute is the least that AWS takes.
        unchecked.put_function_event_invoke_config(
            FunctionName=name,
            MaximumEventAgeInSeconds=1,
            DestinationConfig={"OnFailure": {"Destination": arn}},
        )
    enqueue(stand, name)
    stand.puppeteer.next().reply(**{"raise": "once"})
    assert stand.service.idle(20)
    [record] = records(stand, url)
    assert record["requestContext"]["condition"] == "EventAgeExceeded"
    assert record["requestContext"]["approximateInvokeCount"] == 1
    assert record["responsePayload"]["errorMessage"] == "once"


def test_an_event_for_nobody_is_refused_when_it_is_given(stand: Stand) -> None:
    with pytest.raises(FunctionUnknown):
        stand.service.enqueue("nobody", b"{}")
    assert stand.service.idle(5)


def test_events_of_a_function_that_was_deleted_are_dropped(stand: Stand) -> None:
    name = stand.deploy("puppet")
    enqueue(stand, name)
    told = stand.puppeteer.next()
    stand.undeploy()
    told.reply(**{"raise": "try again"})
    assert stand.service.idle(20)
    assert stand.puppeteer.none_waits()


def test_a_function_can_invoke_another_through_the_endpoint_it_was_given(stand: Stand) -> None:
    from tests.support.zips import zipped

    listener = stand.deploy("puppet")
    caller = f"""
import boto3
def handler(event, context):
    kind = {{"InvocationType": "Event"}}
    return boto3.client("lambda").invoke(FunctionName={listener!r}, Payload=b'"hello"', **kind)["StatusCode"]
"""
    name = stand.deploy("caller", Code={"ZipFile": zipped({"caller.py": caller})}, Timeout=20)
    assert stand.call(name) == 202
    told = stand.puppeteer.next()
    assert told.event == "hello"
    told.reply(**{"return": None})
    assert stand.service.idle(20)
