"""A chain of events that was changed, cut or added to is found, and the first fault is named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from passports.chain.events import append_event
from passports.tasks import verify_events
from signalbox.budget import Budget
from signalbox.errors import ParamsRefused
from signalbox.testing.stage import Stage
from tests.support.at_once import at_once
from tests.support.passport_rows import Tenant


def chain(db: psycopg.Connection, tenant: Tenant, events: int = 3, kind: str = "PassportVersion") -> str:
    aggregate = str(uuid4())
    for number in range(events):
        with db.transaction():
            append_event(db, tenant.id, kind, aggregate, "HAPPENED", {"number": number})
    return aggregate


def verify(stage: Stage, **params: Any) -> dict[str, Any]:
    answer = stage.run("verify_events", force=True, params=params)
    detail: dict[str, Any] = answer["detail"]
    return detail


@contextmanager
def tampering(db: psycopg.Connection) -> Iterator[None]:
    """Do as one who may do everything, and so may switch triggers off."""
    db.execute("SET session_replication_role = replica")
    yield
    db.execute("RESET session_replication_role")


def test_whole_chains_are_counted(stage: Stage, tenant: Tenant, db: psycopg.Connection) -> None:
    chain(db, tenant)
    chain(db, Tenant.make(db), 2)
    assert verify(stage) == {"chains": 2, "events": 5, "first_broken": None}
    assert verify(stage, tenant_id=tenant.id) == {"chains": 1, "events": 3, "first_broken": None}


def test_tenant_that_is_no_uuid_is_refused_by_its_name(stage: Stage) -> None:
    with pytest.raises(ParamsRefused, match="field 'tenant_id'"):
        verify(stage, tenant_id="acme")


@pytest.mark.parametrize(
    ("change", "seq", "fault"),
    [
        ("UPDATE passports.events SET payload = '{\"number\": 7}' WHERE seq = 2", 2, "hash"),
        ("UPDATE passports.events SET event_type = 'ELSE' WHERE seq = 1", 1, "hash"),
        ("UPDATE passports.events SET occurred_at = occurred_at + interval '1 us' WHERE seq = 3", 3, "hash"),
        ("UPDATE passports.events SET actor_id = gen_random_uuid() WHERE seq = 2", 2, "hash"),
        ("UPDATE passports.events SET id = gen_random_uuid() WHERE seq = 2", 2, "hash"),
        ("UPDATE passports.events SET hash = sha256('x') WHERE seq = 2", 2, "hash"),
        ("UPDATE passports.events SET prev_hash = sha256('x') WHERE seq = 2", 2, "prev_hash"),
        ("UPDATE passports.events SET prev_hash = NULL WHERE seq = 2", 2, "prev_hash"),
        ("DELETE FROM passports.events WHERE seq = 1", 1, "gap"),
        ("DELETE FROM passports.events WHERE seq = 2", 2, "gap"),
        ("DELETE FROM passports.events WHERE seq = 3", 3, "head"),
        ("DELETE FROM passports.events", 3, "head"),
        ("DELETE FROM passports.event_heads", 3, "head"),
        ("UPDATE passports.event_heads SET hash = sha256('x')", 3, "head"),
        ("UPDATE passports.event_heads SET seq = 9", 9, "head"),
    ],
)
def test_each_kind_of_change_is_found_and_named(
    stage: Stage, tenant: Tenant, db: psycopg.Connection, change: str, seq: int, fault: str
) -> None:
    aggregate = chain(db, tenant)
    with tampering(db):
        db.execute(change.encode())
    broken = {"tenant_id": tenant.id, "aggregate_type": "PassportVersion", "aggregate_id": aggregate}
    answer = stage.run("verify_events", force=True)
    assert answer["detail"]["first_broken"] == {**broken, "seq": seq, "fault": fault}
    assert fault in answer["reason"]


def test_the_first_chain_by_its_names_is_told(stage: Stage, db: psycopg.Connection) -> None:
    tenants = sorted((Tenant.make(db) for _ in range(3)), key=lambda one: one.id)
    aggregates = [chain(db, one) for one in tenants]
    with tampering(db):
        db.execute("DELETE FROM passports.events WHERE tenant_id = %s", (tenants[1].id,))
        db.execute("UPDATE passports.events SET payload = '{}' WHERE tenant_id = %s", (tenants[2].id,))
    found = verify(stage)
    assert (found["chains"], found["first_broken"]["aggregate_id"]) == (3, aggregates[1])


@pytest.mark.parametrize(
    "statement", ["UPDATE passports.{} SET tenant_id = tenant_id", "DELETE FROM passports.{}", "TRUNCATE passports.{}"]
)
@pytest.mark.parametrize("table", ["events", "facts"])
def test_events_and_facts_stay_as_they_are(tenant: Tenant, db: psycopg.Connection, table: str, statement: str) -> None:
    chain(db, tenant)
    tenant.fact({"sku": "a"})
    with pytest.raises(psycopg.errors.IntegrityConstraintViolation):
        db.execute(statement.format(table).encode())


def test_a_run_without_time_goes_on_with_the_next_event(
    stage: Stage, tenant: Tenant, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        chain(db, tenant, 4)
    monkeypatch.setattr(verify_events, "PAGE", 5)
    with monkeypatch.context() as within:
        looks = iter([False])
        within.setattr(Budget, "spent", property(lambda _: next(looks, True)))
        first = stage.run("verify_events")
    assert (first["items"], first["more"]) == (5, True)
    [last] = stage.deliver()
    assert (last["items"], last["detail"]) == (7, {"chains": 3, "events": 12, "first_broken": None})


def test_appends_at_once_make_one_chain(stage: Stage, tenant: Tenant, db: psycopg.Connection, writer: str) -> None:
    aggregate = chain(db, tenant, 1)

    def append() -> None:
        with psycopg.connect(writer) as own:
            for _ in range(20):
                with own.transaction():
                    append_event(own, tenant.id, "PassportVersion", aggregate, "HAPPENED", {})

    at_once(append, append)
    assert verify(stage) == {"chains": 1, "events": 41, "first_broken": None}
