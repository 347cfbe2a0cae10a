"""Provide the pack's databases and its stage, with AWS's stand-ins for what its jobs send and store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import psycopg
import pytest

from compliance.pack import PACK
from signalbox import Pack
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.stage import Stage
from tests.support.aws import own_bucket
from tests.support.compliance_rows import Workforce


@pytest.fixture
def signalbox_packs() -> Sequence[Pack]:
    return (PACK,)


@pytest.fixture
def people(db: psycopg.Connection) -> Workforce:
    """Make a company with a site and an owner."""
    return Workforce.make(db)


@pytest.fixture
def stage(writer: str, db: psycopg.Connection, invokes: AwsStandIn) -> Iterator[Stage]:
    """Make a stage with the pack."""
    with Stage(writer, invokes, db=db, packs="compliance", sender_address="us@example.com") as stage:
        yield stage


@pytest.fixture
def bucket(moto: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Have the pack's files in a bucket of moto's, for the test alone."""
    name = own_bucket(moto, monkeypatch, "compliance")
    monkeypatch.setenv("COMPLIANCE_BUCKET", name)
    return name
