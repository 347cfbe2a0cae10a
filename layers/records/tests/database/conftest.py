"""Provide the pack's databases and its stage, and the clinic that the tests work in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import psycopg
import pytest

from records.pack import PACK
from signalbox import Pack
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.stage import Stage
from signalbox_laptop.stand_ins.aws_services import AwsServices
from tests.support.aws import own_bucket, shared_client
from tests.support.clinic import Clinic


@pytest.fixture
def signalbox_packs() -> Sequence[Pack]:
    return (PACK,)


@pytest.fixture
def bucket(moto: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Have the jobs' files in a bucket of moto's, for the test alone."""
    return own_bucket(moto, monkeypatch, "jobs")


@pytest.fixture
def stage(writer: str, db: psycopg.Connection, invokes: AwsStandIn, bucket: str) -> Iterator[Stage]:
    with Stage(writer, invokes, db=db, packs="records", jobs_bucket=bucket) as stage:
        yield stage


@pytest.fixture
def clinic(stage: Stage, services: AwsServices, moto: str, bucket: str) -> Clinic:
    return Clinic(stage, services, shared_client("s3", moto), bucket)
