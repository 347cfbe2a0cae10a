"""A snapshot whose facts are all there becomes ready, once."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import psycopg
import pytest

from signalbox.testing.stage import Stage
from tests.support.at_once import at_once
from tests.support.passport_rows import Tenant, events_of


def build(stage: Stage, snapshot: str, **fields: Any) -> dict[str, Any]:
    return stage.step(stage.submit("build_snapshot", payload={"snapshot_id": snapshot}, **fields))


def test_a_snapshot_becomes_ready(stage: Stage, tenant: Tenant, db: psycopg.Connection) -> None:
    snapshot = tenant.snapshot(tenant.fact({"sku": "a"}), tenant.fact({"sku": "b"}), status="BUILDING")
    result = build(stage, snapshot, tenant=tenant.id)["result"]
    assert result == {"snapshot_id": snapshot, "status": "READY", "item_count": 2}
    assert events_of(db, snapshot) == [("SNAPSHOT_READY", {})]


def test_an_empty_snapshot_becomes_ready(stage: Stage, tenant: Tenant) -> None:
    assert build(stage, tenant.snapshot(status="BUILDING"))["result"]["item_count"] == 0


@pytest.mark.parametrize("status", ["READY", "SEALED"])
def test_only_a_snapshot_that_is_being_built_becomes_ready(stage: Stage, tenant: Tenant, status: str) -> None:
    job = build(stage, tenant.snapshot(status=status))
    assert stage.dead_letter(str(job["id"]))["error_type"] == "InvalidSnapshotState"


@pytest.mark.parametrize("case", ["unknown", "another tenant's job", "another tenant's fact", "no such fact"])
def test_rows_that_are_missing_or_foreign_are_not_found(
    stage: Stage, tenant: Tenant, db: psycopg.Connection, case: str
) -> None:
    other = Tenant.make(db)
    facts = {"another tenant's fact": [other.fact({"sku": "x"})], "no such fact": [str(uuid4())]}
    snapshot = tenant.snapshot(*facts.get(case, []), status="BUILDING")
    asked = str(uuid4()) if case == "unknown" else snapshot
    job = build(stage, asked, tenant=other.id if case == "another tenant's job" else None)
    letter = stage.dead_letter(str(job["id"]))
    assert (letter["error_type"], letter["final_error_message"][:9]) == ("NotFound", "NOT_FOUND")


def test_two_jobs_at_once_make_it_ready_once(stage: Stage, tenant: Tenant, db: psycopg.Connection) -> None:
    snapshot = tenant.snapshot(status="BUILDING")
    jobs = [stage.submit("build_snapshot", payload={"snapshot_id": snapshot}) for _ in range(2)]
    other = stage.another()
    at_once(lambda: stage.work(jobs[0]), lambda: other.work(jobs[1]))
    assert sorted(stage.statuses(*jobs)) == ["completed", "failed"]
    assert len(events_of(db, snapshot)) == 1
