"""AWS clients, each made on first use and then kept: a task that calls no service never pays for importing boto3.

A model's client is not kept, since its time-out is what an attempt has left.
"""

from __future__ import annotations

import logging
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_bedrock_runtime import BedrockRuntimeClient
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_sesv2 import SESV2Client
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_textract import TextractClient

CONNECT_SECONDS = 3


class Clients:
    """Make each client once. There is one Clients per execution environment."""

    @cached_property
    def lambda_(self) -> LambdaClient:
        client: LambdaClient = _client("lambda")
        return client

    @cached_property
    def secretsmanager(self) -> SecretsManagerClient:
        client: SecretsManagerClient = _client("secretsmanager")
        return client

    @cached_property
    def events(self) -> EventBridgeClient:
        client: EventBridgeClient = _client("events")
        return client

    @cached_property
    def sqs(self) -> SQSClient:
        client: SQSClient = _client("sqs")
        return client

    @cached_property
    def sns(self) -> SNSClient:
        client: SNSClient = _client("sns")
        return client

    @cached_property
    def sesv2(self) -> SESV2Client:
        client: SESV2Client = _client("sesv2")
        return client

    @cached_property
    def s3(self) -> S3Client:
        client: S3Client = _client("s3")
        return client

    @cached_property
    def textract(self) -> TextractClient:
        client: TextractClient = _client("textract")
        return client


def converse_client(seconds: float) -> BedrockRuntimeClient:
    """Make a client for one question to a model, which tries once and waits this long for the answer."""
    client: BedrockRuntimeClient = _client("bedrock-runtime", read_seconds=seconds, attempts=1)
    return client


def _client(service: str, read_seconds: float = 15, attempts: int = 4) -> Any:
    import boto3
    from botocore.config import Config

    logging.getLogger("botocore").setLevel(logging.WARNING)  # it logs for each client where its credentials come from
    # Short time-outs: a call that hangs would eat the run's whole budget.
    return boto3.client(
        service,  # type: ignore[call-overload]
        config=Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=read_seconds,
            retries={"mode": "standard", "total_max_attempts": attempts},
        ),
    )
