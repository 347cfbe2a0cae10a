"""Where the outcome of an asynchronous invocation goes: a queue, or another function.

The record is Lambda's, version 1.0. A destination that can't be reached is logged and counted; as in AWS, the
outcome is lost then.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from local.lambda_service.faults import LambdaFault
from local.lambda_service.function import Function
from local.lambda_service.invocation import Result

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

_log = logging.getLogger(__name__)

SUCCESS = "Success"
RETRIES_EXHAUSTED = "RetriesExhausted"
EVENT_AGE_EXCEEDED = "EventAgeExceeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """How an event ended: on what condition, after how many invocations, with which last result."""

    request_id: str
    payload: bytes
    condition: str
    invocations: int
    # None where the event never reached its function.
    result: Result | None


def record_of(function: Function, conclusion: Conclusion, now: datetime) -> dict[str, Any]:
    """What a destination receives."""
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
    """A runtime may answer with what is no JSON; Lambda passes it on as text."""
    try:
        return json.loads(payload)
    except ValueError:
        return payload.decode(errors="replace")


class Destinations:
    """Sends records, to SQS through its API and to functions as events."""

    def __init__(self, sqs: SQSClient, enqueue: Callable[[str, bytes], object]) -> None:
        self._sqs = sqs
        self._enqueue = enqueue
        self.failed = 0

    def conclude(self, function: Function, conclusion: Conclusion) -> None:
        config = function.event_config
        destination = config.on_success if conclusion.condition == SUCCESS else config.on_failure
        if destination is None:
            return
        record = json.dumps(record_of(function, conclusion, datetime.now(UTC)))
        try:
            self._send(destination, record)
        except (BotoCoreError, ClientError, LambdaFault) as error:
            self.failed += 1
            _log.warning("destination.failed function=%s to=%s error=%s", function.name, destination, error)

    def _send(self, destination: str, record: str) -> None:
        service, account, resource = _parts(destination)
        if service == "sqs":
            url = self._sqs.get_queue_url(QueueName=resource, QueueOwnerAWSAccountId=account)["QueueUrl"]
            self._sqs.send_message(QueueUrl=url, MessageBody=record)
        elif service == "lambda":
            self._enqueue(destination, record.encode())
        else:
            raise LambdaFault(f"the laptop sends outcomes to SQS queues and Lambda functions, not to {destination}")


def _parts(arn: str) -> tuple[str, str, str]:
    _, _, service, _, account, resource = arn.split(":", 5)
    return service, account, resource
