"""Make the event that Lambda makes of SQS messages, and read which of them a function's answer fails."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from signalbox_laptop.lambda_runtime.invocation import Result

if TYPE_CHECKING:
    from mypy_boto3_sqs.type_defs import MessageTypeDef


def event_of(messages: Sequence[MessageTypeDef], queue_arn: str, region: str) -> bytes:
    records = [_record(message, queue_arn, region) for message in messages]
    return json.dumps({"Records": records}).encode()


def failed_ids(result: Result, sent: Sequence[str], *, partial: bool) -> set[str]:
    """Return the messages to leave in the queue, by Lambda's rules: when in doubt, all of them."""
    if result.failed:
        return set(sent)
    if not partial:
        return set()
    try:
        answer = json.loads(result.payload)
    except ValueError:
        return set(sent)
    named = _named(answer)
    return set(sent) if named is None or not named <= set(sent) else named


def _named(answer: Any) -> set[str] | None:
    """Return the identifiers in the answer, or None if it has not the shape that Lambda asks for."""
    if answer is None:
        return set()
    if not isinstance(answer, dict):
        return None
    failures = answer.get("batchItemFailures")
    if failures is None:
        # An answer without the key, or with null, means that all succeeded.
        return set()
    if not isinstance(failures, list):
        return None
    identifiers = [failure.get("itemIdentifier") if isinstance(failure, dict) else None for failure in failures]
    if not all(isinstance(one, str) and one for one in identifiers):
        return None
    return {str(one) for one in identifiers}


def _record(message: MessageTypeDef, queue_arn: str, region: str) -> dict[str, Any]:
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": dict(message.get("Attributes", {})),
        "messageAttributes": {name: _attribute(value) for name, value in message.get("MessageAttributes", {}).items()},
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": queue_arn,
        "awsRegion": region,
    }


def _attribute(value: Mapping[str, Any]) -> dict[str, Any]:
    attribute: dict[str, Any] = {"stringListValues": [], "binaryListValues": [], "dataType": value["DataType"]}
    if "StringValue" in value:
        attribute["stringValue"] = value["StringValue"]
    if "BinaryValue" in value:
        attribute["binaryValue"] = base64.b64encode(value["BinaryValue"]).decode()
    return attribute
