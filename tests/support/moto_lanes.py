"""Make a stack's lanes in moto as the template does, and read them."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any
from uuid import uuid4

import boto3

from signalbox.packs.job_type import Lane

RECEIVES = "10"  # of a message, before it goes to the dead-letter queue


class MotoLanes:
    """Own the queues of a stack that has a name of its own."""

    def __init__(self, endpoint: str) -> None:
        self.stack = f"jobs-{uuid4().hex[:12]}"
        self.sqs = boto3.client("sqs", endpoint_url=endpoint)
        for lane in Lane:
            make_lane(self.sqs, f"{self.stack}-{lane}")

    def url_of(self, lane: str) -> str:
        return self.sqs.get_queue_url(QueueName=f"{self.stack}-{lane}")["QueueUrl"]

    def receive(self, lane: str) -> list[dict[str, Any]]:
        """Take off all visible messages of a lane: each body with its group as `group`."""
        url, found = self.url_of(lane), list[dict[str, Any]]()
        while messages := self.poll(url):
            for message in messages:
                group = message.get("Attributes", {}).get("MessageGroupId")
                found.append(json.loads(message["Body"]) | {"group": group})
                self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return found

    def poll(self, url: str) -> Any:
        names: Any = ["MessageGroupId", "ApproximateReceiveCount"]
        answer = self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageSystemAttributeNames=names)
        return answer.get("Messages")

    def delayed(self, lane: str) -> int:
        """Count the messages of a lane that still wait for their DelaySeconds to pass."""
        name: Any = "ApproximateNumberOfMessagesDelayed"
        answer = self.sqs.get_queue_attributes(QueueUrl=self.url_of(lane), AttributeNames=[name])
        return int(answer["Attributes"][name])

    def drop(self) -> None:
        """Delete the queues: forgotten ones slow moto down for the tests that follow."""
        for lane in Lane:
            for name in (f"{self.stack}-{lane}", f"{self.stack}-{lane}-dlq"):
                with suppress(self.sqs.exceptions.QueueDoesNotExist):
                    self.sqs.delete_queue(QueueUrl=self.sqs.get_queue_url(QueueName=name)["QueueUrl"])


def make_lane(sqs: Any, name: str) -> str:
    """Make a queue with its dead-letter queue, as the template has them; return its URL."""
    dead = sqs.create_queue(QueueName=f"{name}-dlq")["QueueUrl"]
    wanted = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    redrive = json.dumps({"deadLetterTargetArn": wanted, "maxReceiveCount": RECEIVES})
    made: str = sqs.create_queue(QueueName=name, Attributes={"RedrivePolicy": redrive})["QueueUrl"]
    return made
