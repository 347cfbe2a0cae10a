"""What the dead_letter function receives: messages of lanes, of EventBridge and of Lambda, as SQS gives them."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

from signalbox.app import App
from tests.support.stage import Stage

ACCOUNT = "us-east-1:123456789012"
EVENT = {"version": "0", "detail-type": "Scheduled Event", "source": "aws.events", "time": "2026-03-10T02:30:00Z"}
PRUNING = {"task": "prune_history", "scheduled_time": "2026-03-10T02:30:00Z"}


def message(body: object, queue: str = "signalbox-failed-invocations", **attributes: str) -> dict[str, Any]:
    """A record of an SQS event; a body that is no text goes as JSON."""
    return {
        "messageId": str(uuid4()),
        "receiptHandle": "handle",
        "body": body if isinstance(body, str) else json.dumps(body),
        "attributes": {"ApproximateReceiveCount": "3", "MessageGroupId": "acme"},
        "messageAttributes": {name: {"stringValue": value, "dataType": "String"} for name, value in attributes.items()},
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:{ACCOUNT}:{queue}",
    }


def lane_message(body: object, lane: str = "normal") -> dict[str, Any]:
    return message(body, f"signalbox-{lane}-dlq")


def undelivered(rule: str = "prune_history", **attributes: str) -> dict[str, Any]:
    """An event that a rule could not deliver, with EventBridge's attributes."""
    given = {
        "RULE_ARN": f"arn:aws:events:{ACCOUNT}:rule/signalbox.{rule}",
        "TARGET_ARN": f"arn:aws:lambda:{ACCOUNT}:function:signalbox-archiver",
        "ERROR_CODE": "THROTTLING",
        "ERROR_MESSAGE": "Rate exceeded",
        "RETRY_ATTEMPTS": "4",
        "EXHAUSTED_RETRY_CONDITION": "MaximumRetryAttempts",
    }
    return message(EVENT, **(given | attributes))


def failed_invocation(function: str = "signalbox-archiver", payload: Any = None, **fields: Any) -> dict[str, Any]:
    """Lambda's record of an asynchronous invocation that failed each time."""
    record = {
        "version": "1.0",
        "timestamp": "2026-03-10T02:34:00.000Z",
        "requestContext": {
            "requestId": "request-1",
            "functionArn": f"arn:aws:lambda:{ACCOUNT}:function:{function}:$LATEST",
            "condition": "RetriesExhausted",
            "approximateInvokeCount": 3,
        },
        "requestPayload": PRUNING if payload is None else payload,
        "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
        "responsePayload": {"errorType": "RuntimeError", "errorMessage": "no", "stackTrace": ["one\n", "two\n"]},
    }
    return message({name: value for name, value in (record | fields).items() if value is not None})


def consume(engine: App, *records: dict[str, Any]) -> list[str]:
    """One invocation of the dead_letter function; answers the ids of the messages that come back."""
    answer = engine.consume_dead_letters({"Records": list(records)}, Stage.invocation())
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]
