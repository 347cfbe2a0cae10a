"""Make a test's own queues and buckets in AWS's stand-in, and read them."""

from __future__ import annotations

import json
from functools import cache
from typing import Any
from uuid import uuid4

import pytest

from signalbox_laptop.aws import client


def speak_to(moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lead every client of this process to moto, the code's own among them."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


def own_bucket(moto: str, monkeypatch: pytest.MonkeyPatch, prefix: str) -> str:
    """Make a bucket for the test alone, and return its name."""
    name = f"{prefix}-{uuid4().hex[:12]}"
    speak_to(moto, monkeypatch)
    shared_client("s3", moto).create_bucket(Bucket=name)
    return name


class Aws:
    """Give each test queues and buckets with unique names, so that tests share one stand-in."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.sqs, self.s3 = shared_client("sqs", endpoint), shared_client("s3", endpoint)
        mark = uuid4().hex[:12]
        self.notifications = self.sqs.create_queue(QueueName=f"notifications-{mark}")["QueueUrl"]
        self.evaluations = self.sqs.create_queue(QueueName=f"evaluations-{mark}")["QueueUrl"]
        self.forecast_bucket, self.archive_bucket = f"forecasts-{mark}", f"archive-{mark}"
        for bucket in (self.forecast_bucket, self.archive_bucket):
            self.s3.create_bucket(Bucket=bucket)

    def settings(self) -> dict[str, str]:
        """Return the variables by which the pack finds them."""
        return {
            "FORECASTS_NOTIFICATIONS_QUEUE": self.notifications.rpartition("/")[2],
            "FORECASTS_EVALUATIONS_QUEUE": self.evaluations.rpartition("/")[2],
            "FORECASTS_FORECAST_BUCKET": self.forecast_bucket,
            "FORECASTS_ARCHIVE_BUCKET": self.archive_bucket,
        }

    def drain(self, queue_url: str) -> list[dict[str, Any]]:
        """Take every message out of the queue; return their bodies."""
        bodies: list[dict[str, Any]] = []
        while found := self.sqs.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=10).get("Messages"):
            for message in found:
                bodies.append(json.loads(message["Body"]))
                self.sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=message["ReceiptHandle"])
        return bodies


@cache
def shared_client(service: str, endpoint: str) -> Any:
    """Make a client once for all tests: that takes botocore longer than most of them."""
    return client(service, endpoint)
