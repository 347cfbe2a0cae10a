"""Make the service's own AWS clients, all of them for moto.

They take nothing from the developer's shell or home: no profile, no proxy, no real credentials.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import boto3
import botocore.session
from botocore.config import Config

from signalbox_laptop.aws import CREDENTIALS, REGION

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_logs import CloudWatchLogsClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

    from signalbox_laptop.lambda_control.settings import ServiceSettings


@dataclass(frozen=True, slots=True)
class LambdaClients:
    """Keep one client per service that the laptop's Lambda calls; threads may share botocore's clients."""

    lambda_: LambdaClient
    logs: CloudWatchLogsClient
    s3: S3Client
    sqs: SQSClient

    def close(self) -> None:
        """Close the connections to moto."""
        self.lambda_.close()
        self.logs.close()
        self.s3.close()
        self.sqs.close()


def connect(settings: ServiceSettings) -> LambdaClients:
    session = _session()
    endpoint = settings.moto_endpoint
    config = Config(
        proxies={},
        max_pool_connections=64,
        connect_timeout=5,
        retries={"total_max_attempts": 1},
        parameter_validation=False,
        s3={"addressing_style": "path"},
    )
    return LambdaClients(
        lambda_=session.client("lambda", endpoint_url=endpoint, config=config),
        logs=session.client("logs", endpoint_url=endpoint, config=config),
        s3=session.client("s3", endpoint_url=endpoint, config=config),
        sqs=session.client("sqs", endpoint_url=endpoint, config=config),
    )


def _session() -> boto3.Session:
    nowhere = (None, None, os.devnull, None)
    # An AWS_PROFILE that is missing in these empty files would make every client fail.
    unread = {"profile": (None, None, None, None), "config_file": nowhere, "credentials_file": nowhere}
    return boto3.Session(
        aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        region_name=REGION,
        botocore_session=botocore.session.Session(session_vars=unread),
    )
