"""Provide the pack's databases and its stage, with AWS's stand-ins for what its jobs send and store."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Sequence
from uuid import uuid4

import psycopg
import pytest

from passports.pack import PACK
from signalbox import Pack
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.stage import Stage
from tests.support.aws import own_bucket, shared_client
from tests.support.passport_rows import Tenant

# RFC 8032, section 7.1, test 1.
PRIVATE_KEY = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")


@pytest.fixture
def signalbox_packs() -> Sequence[Pack]:
    return (PACK,)


@pytest.fixture
def tenant(db: psycopg.Connection) -> Tenant:
    return Tenant.make(db)


@pytest.fixture
def bucket(moto: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Have the jobs' files in a bucket of moto's, for the test alone."""
    return own_bucket(moto, monkeypatch, "jobs")


@pytest.fixture
def signing_key(moto: str, bucket: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Keep the key of RFC 8032's first test as the secret that passports are signed with; return its ARN."""
    secret = json.dumps({"private_key": b64encode(PRIVATE_KEY).decode(), "key_id": "key-1"})
    name = f"passports-{uuid4().hex[:8]}"
    arn: str = shared_client("secretsmanager", moto).create_secret(Name=name, SecretString=secret)["ARN"]
    monkeypatch.setenv("PASSPORTS_SIGNING_SECRET_ARN", arn)
    return arn


@pytest.fixture
def stage(writer: str, db: psycopg.Connection, invokes: AwsStandIn, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """Make a stage with the pack, and with the bucket where the test has one."""
    names = request.fixturenames
    if "signing_key" in names:
        request.getfixturevalue("signing_key")
    settings = {"jobs_bucket": request.getfixturevalue("bucket")} if "bucket" in names else {}
    with Stage(writer, invokes, db=db, packs="passports", **settings) as stage:
        yield stage
