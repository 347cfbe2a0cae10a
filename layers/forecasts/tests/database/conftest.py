"""Provide the pack's databases, its stage, and AWS's stand-in for what its tasks send and store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import uuid4

import psycopg
import pytest

from forecasts.pack import PACK
from signalbox.packs.pack import Pack
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.stage import Stage
from stand_ins.runpod import KEY, RunPodStandIn
from tests.support.aws import Aws, shared_client, speak_to


@pytest.fixture
def signalbox_packs() -> Sequence[Pack]:
    return (PACK,)


@pytest.fixture
def aws(moto: str, monkeypatch: pytest.MonkeyPatch) -> Aws:
    """Make queues and buckets for the test alone; the pack finds them by its settings, as it does when deployed."""
    speak_to(moto, monkeypatch)
    aws = Aws(moto)
    for name, value in aws.settings().items():
        monkeypatch.setenv(name, value)
    return aws


@pytest.fixture
def stage(
    writer: str, db: psycopg.Connection, aws: Aws, invokes: AwsStandIn, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Stage]:
    """Make a stage with the pack. Lambda is the engine's stand-in, the rest of AWS moto."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", invokes.url)
    monkeypatch.setenv("AWS_ENDPOINT_URL", aws.endpoint)
    with Stage(writer, invokes, db=db, packs="forecasts") as stage:
        yield stage


@pytest.fixture
def runpod(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunPodStandIn]:
    """Start RunPod's stand-in, which the pack finds by its settings and a secret."""
    stand_in = RunPodStandIn()
    stand_in.start()
    secret = shared_client("secretsmanager", aws.endpoint).create_secret(Name=f"runpod-{uuid4().hex}", SecretString=KEY)
    for name, value in {
        "FORECASTS_RUNPOD_BASE_URL": stand_in.url,
        "FORECASTS_RUNPOD_ENDPOINT_ID": stand_in.endpoint,
        "FORECASTS_RUNPOD_SECRET": secret["Name"],
    }.items():
        monkeypatch.setenv(name, value)
    yield stand_in
    stand_in.stop()


@pytest.fixture
def queue(aws: Aws, invokes: AwsStandIn, monkeypatch: pytest.MonkeyPatch) -> AwsStandIn:
    """Replace moto's queues by ones that a test may let fail."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", invokes.url)
    return invokes
