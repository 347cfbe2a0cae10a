"""Make the events that SQS gives to a function: messages of lanes and of dead-letter queues, and failed invocations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import uuid4

ACCOUNT = "us-east-1:123456789012"
EVENT = {"version": "0", "detail-type": "Scheduled Event", "source": "aws.events", "time": "2026-03-10T02:30:00Z"}
PRUNING = {"task": "prune_history", "scheduled_time": "2026-03-10T02:30:00Z"}


def sqs_event(jobs: Iterable[Any], queue: str = "signalbox-normal", receives: int = 1) -> dict[str, Any]:
    """Return the event for these: jobs (anything with id and job_type), or bodies as they are."""
    return {"Records": [message(_body(job), queue, receives=receives) for job in jobs]}


def message(
    body: object, queue: str = "signalbox-failed-invocations", receives: int = 3, attributes: Mapping[str, str] = {}
) -> dict[str, Any]:
    """Return a record of an SQS event with these message attributes; a body that is not text becomes JSON."""
    return {
        "messageId": str(uuid4()),
        "receiptHandle": uuid4().hex,
        "body": body if isinstance(body, str) else json.dumps(body),
        "attributes": {"ApproximateReceiveCount": str(receives), "MessageGroupId": "acme"},
        "messageAttributes": {name: {"stringValue": value, "dataType": "String"} for name, value in attributes.items()},
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:{ACCOUNT}:{queue}",
    }


def lane_message(body: object, lane: str = "normal") -> dict[str, Any]:
    """Return a message of a lane's dead-letter queue."""
    return message(body, f"signalbox-{lane}-dlq")


def undelivered(rule: str = "prune_history", **attributes: str) -> dict[str, Any]:
    """Return an event that a rule could not deliver, with EventBridge's attributes."""
    given = {
        "RULE_ARN": f"arn:aws:events:{ACCOUNT}:rule/signalbox.{rule}",
        "TARGET_ARN": f"arn:aws:lambda:{ACCOUNT}:function:signalbox-archiver",
        "ERROR_CODE": "THROTTLING",
        "ERROR_MESSAGE": "Rate exceeded",
        "RETRY_ATTEMPTS": "4",
        "EXHAUSTED_RETRY_CONDITION": "MaximumRetryAttempts",
    }
    return message(EVENT, attributes=given | attributes)


def failed_invocation(function: str = "signalbox-archiver", payload: Any = None, **fields: Any) -> dict[str, Any]:
    """Return Lambda's record of an asynchronous invocation that failed each time."""
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


def _body(job: Any) -> str:
    return job if isinstance(job, str) else json.dumps({"job_id": job.id, "job_type": job.job_type})
