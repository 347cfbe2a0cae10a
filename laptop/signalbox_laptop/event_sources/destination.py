"""Send to the two kinds of target that a rule can have, a function and a queue, after checking EventBridge's rights.

An error that a retry can't mend is refused with EventBridge's own code; any other fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from signalbox_laptop.aws import ACCOUNT, client
from signalbox_laptop.event_sources.permission import permits
from signalbox_laptop.lambda_api.errors import LambdaFault

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_sqs import SQSClient

# Puts an asynchronous event into the Lambda service's queue, given the function's ARN and the payload.
Enqueue = Callable[[str, bytes], object]
_MISSING = ("ResourceNotFoundException", "AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")


class DeliveryFailed(Exception):
    """The delivery may succeed later."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class DeliveryRefused(DeliveryFailed):
    """The delivery would be refused again, however often it is tried."""


@dataclass(frozen=True, slots=True)
class Destinations:
    """Send to everything that this stack's rules can reach."""

    lambda_: LambdaClient
    sqs: SQSClient
    enqueue: Enqueue

    @staticmethod
    def at(endpoint: str, enqueue: Enqueue) -> Destinations:
        return Destinations(client("lambda", endpoint), client("sqs", endpoint), enqueue)

    def send(self, arn: str, payload: str, rule_arn: str, message_group_id: str | None = None) -> None:
        """Send to a function or a queue; raise DeliveryFailed if it does not arrive."""
        service = arn.split(":")[2]
        try:
            if service == "lambda":
                self._invoke(arn, payload, rule_arn)
            elif service == "sqs":
                self.send_message(arn, payload, rule_arn, message_group_id)
            else:
                raise DeliveryRefused("INVALID_PARAMETER", f"the laptop delivers to functions and queues, not to {arn}")
        except (ClientError, BotoCoreError, OSError) as error:
            raise DeliveryFailed("ERROR_FROM_TARGET", str(error)) from error

    def send_message(
        self,
        arn: str,
        body: str,
        rule_arn: str,
        message_group_id: str | None = None,
        attributes: dict[str, str] | None = None,
    ) -> None:
        """Send to a queue that lets this rule send."""
        try:
            url = self.sqs.get_queue_url(QueueName=arn.rpartition(":")[2])["QueueUrl"]
        except ClientError as error:
            raise _missing(error, arn) from error
        held = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"]).get("Attributes", {})
        _require(held.get("Policy"), "sqs:SendMessage", arn, rule_arn)
        group: Any = {"MessageGroupId": message_group_id} if message_group_id else {}
        self.sqs.send_message(
            QueueUrl=url,
            MessageBody=body,
            MessageAttributes={
                name: {"DataType": "String", "StringValue": value} for name, value in (attributes or {}).items()
            },
            **group,
        )

    def _invoke(self, arn: str, payload: str, rule_arn: str) -> None:
        try:
            self.lambda_.get_function_configuration(FunctionName=arn)
        except ClientError as error:
            raise _missing(error, arn) from error
        _require(self._function_policy(arn), "lambda:InvokeFunction", arn, rule_arn)
        try:
            self.enqueue(arn, payload.encode())
        except LambdaFault as fault:
            raise _fault(fault) from fault

    def _function_policy(self, arn: str) -> str | None:
        try:
            return self.lambda_.get_policy(FunctionName=arn)["Policy"]
        except ClientError as error:
            if error.response["Error"]["Code"] in _MISSING:
                return None
            raise


def _require(policy: str | None, action: str, arn: str, rule_arn: str) -> None:
    if not permits(policy, action, rule_arn, ACCOUNT):
        raise DeliveryRefused("NO_PERMISSIONS", f"{arn} does not allow events.amazonaws.com {action} for {rule_arn}")


def _fault(fault: LambdaFault) -> DeliveryFailed:
    """Return an error that can be retried if Lambda failed or throttled, and a refusal if the call was wrong."""
    if fault.status == 429:
        return DeliveryFailed("THROTTLING", str(fault))
    return (DeliveryFailed if fault.status >= 500 else DeliveryRefused)("SDK_CLIENT_ERROR", str(fault))


def _missing(error: ClientError, arn: str) -> DeliveryFailed:
    if error.response["Error"]["Code"] in _MISSING:
        return DeliveryRefused("NO_RESOURCE", f"{arn} does not exist")
    return DeliveryFailed("ERROR_FROM_TARGET", str(error))
