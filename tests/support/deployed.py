"""Deploy something to AWS's stand-in, for tests that look at it through the API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3

from signalbox.engine_pack import registry_of
from signalbox_laptop.aws import client
from signalbox_laptop.deploy.deploy import deploy, plan
from signalbox_laptop.moto.process import MotoProcess

SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:database-abcdef"


@dataclass(frozen=True, slots=True)
class Deployed:
    """Reach a stack named `signalbox` at an endpoint."""

    endpoint: str

    def client(self, service: str) -> Any:
        return client(service, self.endpoint)

    def outputs(self) -> dict[str, str]:
        stack = self.client("cloudformation").describe_stacks(StackName="signalbox")["Stacks"][0]
        return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}

    def receive(self, output: str, wait_seconds: int = 5) -> dict[str, Any]:
        """Take the next message off the queue whose URL is an output."""
        sqs, url = self.client("sqs"), self.outputs()[output]
        answer = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=wait_seconds, MessageAttributeNames=["All"])
        (message,) = answer.get("Messages", [])
        sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return dict(message)

    def drain(self, output: str) -> None:
        """Take all messages off the queue; SQS itself purges once a minute only."""
        sqs, url = self.client("sqs"), self.outputs()[output]
        while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
            for message in messages:
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])

    def count(self, output: str) -> int:
        """Count the messages that wait in the queue."""
        sqs, url = self.client("sqs"), self.outputs()[output]
        held = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])
        return int(held["Attributes"]["ApproximateNumberOfMessages"])


@contextmanager
def moto(home: Path) -> Iterator[str]:
    """Start a stand-in of one's own; yield its endpoint."""
    process = MotoProcess(home)
    try:
        yield process.start()
    finally:
        process.stop()


def reset(endpoint: str) -> None:
    """Make the stand-in forget all that it holds."""
    answer = urllib3.request("POST", f"{endpoint}/moto-api/reset")
    assert answer.status == 200


def deploy_to(endpoint: str, template: Path, given: Mapping[str, str] | None = None) -> Deployed:
    """Deploy a template there, as `up` does."""
    deploy(plan(template, "signalbox", given or {}, registry_of), endpoint)
    return Deployed(endpoint)
