"""An engine with the tests' job types, and lanes in AWS's stand-in that are the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest

from signalbox.packs.registries import JobTypeRegistry
from signalbox_laptop.moto.process import MotoProcess
from tests.support.depot import Depot
from tests.support.invoke_recorder import InvokeRecorder
from tests.support.jobs import TEST_JOB_TYPES
from tests.support.jobs_stage import JobsStage
from tests.support.lane_stand_in import LaneStandIn
from tests.support.letters import Letters
from tests.support.s3_front import S3Front
from tests.support.stage import Stage, as_url
from tests.support.workshop import Workshop


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    process = MotoProcess(tmp_path_factory.mktemp("moto"))
    try:
        yield process.start()
    finally:
        process.stop()


@pytest.fixture
def job_types() -> JobTypeRegistry:
    return JobTypeRegistry(TEST_JOB_TYPES)


@pytest.fixture
def jobs_stage(
    writer: str, moto: str, invokes: InvokeRecorder, job_types: JobTypeRegistry, monkeypatch: pytest.MonkeyPatch
) -> Iterator[JobsStage]:
    """Lambda is the recorder, the rest of AWS the stand-in."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", invokes.url)
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto)
    with JobsStage(writer, invokes, job_types) as stage:
        yield stage
        stage.drop_lanes()


@pytest.fixture
def lanes(monkeypatch: pytest.MonkeyPatch, invokes: InvokeRecorder) -> Iterator[LaneStandIn]:
    """SQS as far as lanes need it; Lambda is the recorder."""
    with LaneStandIn() as lanes:
        monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", lanes.url)
        yield lanes


@pytest.fixture
def workshop(writer: str, invokes: InvokeRecorder, db: psycopg.Connection, lanes: LaneStandIn) -> Iterator[Workshop]:
    with Stage(writer, invokes) as stage:
        yield Workshop(stage, db)


@pytest.fixture
def letters(workshop: Workshop) -> Letters:
    return Letters(workshop)


@pytest.fixture
def depot(
    writer: str,
    reader: str,
    invokes: InvokeRecorder,
    db: psycopg.Connection,
    lanes: LaneStandIn,
    moto: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Depot]:
    """The engine's own job types, with S3 behind a front."""
    with S3Front(moto) as front:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", front.url)
        bucket = f"jobs-{uuid4().hex[:12]}"
        transfers = f"import:public.*,export:public.*,bucket:not-created-yet,bucket:other-{bucket}"
        with Stage(writer, invokes, jobs_bucket=bucket, file_transfers=transfers, reader_url=as_url(reader)) as stage:
            yield Depot(stage, db, moto, front)
