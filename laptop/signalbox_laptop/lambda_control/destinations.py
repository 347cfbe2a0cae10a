"""Send the record of a failed asynchronous invocation to its destination, a queue.

The record is Lambda's, version 1.0. A queue that can't be reached is logged and counted; as in AWS, the record is lost
then.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from signalbox_laptop.lambda_api.errors import LambdaFault
from signalbox_laptop.lambda_control.function import Function
from signalbox_laptop.lambda_runtime.invocation import Result

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

_log = logging.getLogger(__name__)

RETRIES_EXHAUSTED = "RetriesExhausted"
EVENT_AGE_EXCEEDED = "EventAgeExceeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """Say how an event ended: on what condition, after how many invocations, with which last result."""

    request_id: str
    payload: bytes
    condition: str
    invocations: int
    # None if the event never reached its function.
    result: Result | None


def record_of(function: Function, conclusion: Conclusion, now: datetime) -> dict[str, Any]:
    """Return what a destination receives."""
    record: dict[str, Any] = {
        "version": "1.0",
        "timestamp": now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{now.microsecond // 1000:03d}Z",
        "requestContext": {
            "requestId": conclusion.request_id,
            "functionArn": f"{function.arn}:{function.version}",
            "condition": conclusion.condition,
            "approximateInvokeCount": conclusion.invocations,
        },
        "requestPayload": _json(conclusion.payload),
    }
    return record if conclusion.result is None else {**record, **_response(conclusion.result)}


def _response(result: Result) -> dict[str, Any]:
    context: dict[str, Any] = {"statusCode": 200, "executedVersion": result.executed_version}
    if result.function_error:
        context["functionError"] = result.function_error
    return {"responseContext": context, "responsePayload": _json(result.payload)}


def _json(payload: bytes) -> Any:
    """Decode a payload; Lambda passes one that is no JSON on as text."""
    try:
        return json.loads(payload)
    except ValueError:
        return payload.decode(errors="replace")


class FailureDestinations:
    """Send records through the API of SQS."""

    def __init__(self, sqs: SQSClient) -> None:
        self._sqs = sqs
        self.failed = 0

    def conclude(self, function: Function, conclusion: Conclusion) -> None:
        """Send the record to the function's queue for failures, if it names one."""
        destination = function.event_config.on_failure
        if destination is None:
            return
        record = json.dumps(record_of(function, conclusion, datetime.now(UTC)))
        try:
            self._send(destination, record)
        except (BotoCoreError, ClientError, LambdaFault) as error:
            self.failed += 1
            _log.warning("destination.failed function=%s to=%s error=%s", function.name, destination, error)

    def _send(self, destination: str, record: str) -> None:
        _, _, service, _, account, resource = destination.split(":", 5)
        if service != "sqs":
            raise LambdaFault(f"the laptop sends failures to SQS queues, not to {destination}")
        url = self._sqs.get_queue_url(QueueName=resource, QueueOwnerAWSAccountId=account)["QueueUrl"]
        self._sqs.send_message(QueueUrl=url, MessageBody=record)
