"""AWS clients, each made on first use and then kept: a task that calls no service never pays for importing boto3."""

from __future__ import annotations

import logging
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_sesv2 import SESV2Client
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient


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


def _client(service: str) -> Any:
    import boto3
    from botocore.config import Config

    logging.getLogger("botocore").setLevel(logging.WARNING)  # it logs for each client where its credentials come from
    # Short time-outs: a call that hangs would eat the run's whole budget.
    return boto3.client(
        service,  # type: ignore[call-overload]
        config=Config(connect_timeout=3, read_timeout=15, retries={"mode": "standard", "total_max_attempts": 4}),
    )
