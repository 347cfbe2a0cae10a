"""Provide a stage with the tests' job types, and each test's own lanes and buckets."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from signalbox.testing.aws import AwsStandIn
from signalbox.testing.stage import Stage, as_url
from tests.support.bucket import Bucket
from tests.support.jobs import TEST_JOB_TYPES
from tests.support.moto_lanes import MotoLanes
from tests.support.s3_front import S3Front


@pytest.fixture
def stage(stage: Stage) -> Stage:
    return stage.with_job_types(*TEST_JOB_TYPES)


@pytest.fixture
def notes(db: psycopg.Connection) -> None:
    """Create the business table that note_job writes."""
    db.execute("CREATE TABLE notes (job_id uuid, subject text)")


@pytest.fixture
def lanes(invokes: AwsStandIn) -> AwsStandIn:
    """Provide as much of SQS as lanes need."""
    return invokes


@pytest.fixture
def other(stage: Stage, dsn: str) -> Iterator[Stage]:
    """Provide a stage on a second connection."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield stage.beside(connection)


@pytest.fixture
def queues(moto: str, invokes: AwsStandIn, monkeypatch: pytest.MonkeyPatch) -> Iterator[MotoLanes]:
    """Replace the stand-in's lanes by a stack's in moto."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", moto)
    queues = MotoLanes(moto)
    yield queues
    queues.drop()


@pytest.fixture
def bucket(moto: str, invokes: AwsStandIn, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """Provide the bucket for imported and exported files."""
    with S3Front(moto) as front:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", front.url)
        yield Bucket(moto, front)


@pytest.fixture
def transfers(writer: str, reader: str, invokes: AwsStandIn, db: psycopg.Connection, bucket: Bucket) -> Iterator[Stage]:
    """Let a stage's jobs use the tables of `public`, its own bucket, and two that do not exist yet."""
    allowed = f"import:public.*,export:public.*,bucket:not-created-yet,bucket:other-{bucket.name}"
    settings = {"jobs_bucket": bucket.name, "file_transfers": allowed, "reader_url": as_url(reader)}
    with Stage(writer, invokes, db=db, **settings) as stage:
        yield stage
