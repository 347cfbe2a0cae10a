"""Jobs submitted in SQL are checked by the table of types and stored as Python stores them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb
from pydantic import BaseModel, Field, ValidationError, field_validator

from signalbox.engine_pack import ENGINE
from signalbox.migrate.job_types import keep_job_types
from signalbox.packs.job_payload import JobPayload
from signalbox.packs.job_type import JobType, TypeCap
from signalbox.packs.payload_schema import has_validators, schema_of
from signalbox.packs.registries import RegisteredJobType
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.rows import count
from signalbox.testing.stage import Stage

TASK = '{"task": "prune_history"}'


class Address(BaseModel):
    """Form a part of a payload."""

    street: Annotated[str, Field(min_length=2, max_length=5)]
    number: int | None = None


class Parcel(JobPayload):
    """Have one field of each kind that the checker in SQL knows."""

    size: Literal["s", "m"] = "s"
    weight: Annotated[float, Field(gt=0, le=3)] = 1
    count: Annotated[int, Field(ge=1, lt=4)] = 1
    fragile: bool = False
    to: Address
    stops: Annotated[list[Address], Field(max_length=2)] = Field(default=[])
    notes: dict[str, str | None] = Field(default={})
    any: Any = None


class Checked(JobPayload):
    """Check a payload with its own validator."""

    even: int

    @field_validator("even")
    @classmethod
    def _is_even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("it is odd")
        return value


SCALARS = st.none() | st.booleans() | st.integers(-1, 5) | st.sampled_from(["", "s", "ab", "abcdef", 0.5, 3.5])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["street", "number", "x"]), inner),
    max_leaves=4,
)
ADDRESSES = st.fixed_dictionaries({"street": st.sampled_from(["ab", "abcdef"])}, optional={"number": SCALARS})
FIELDS = {
    "size": SCALARS,
    "weight": SCALARS,
    "count": SCALARS,
    "fragile": SCALARS,
    "to": ADDRESSES | VALUES,
    "stops": st.lists(ADDRESSES, max_size=3) | VALUES,
    "notes": st.dictionaries(st.sampled_from(["a", "b"]), SCALARS) | VALUES,
    "any": VALUES,
    "unknown": SCALARS,
}
# All is well but for one field, or two.
PARCELS = st.lists(st.sampled_from(sorted(FIELDS)), max_size=2).flatmap(
    lambda names: st.fixed_dictionaries({"to": st.just({"street": "ab"})} | {name: FIELDS[name] for name in names})
)


def submit(db: psycopg.Connection, job_type: str = "run_task", payload: str = TASK, **options: Any) -> str:
    row = db.execute("SELECT signalbox.submit_job(%s, %s, %s)::text", (job_type, payload, Jsonb(options))).fetchone()
    assert row is not None
    return str(row[0])


def columns(db: psycopg.Connection, job_id: str, *names: str) -> tuple[Any, ...]:
    row = db.execute(f"SELECT {', '.join(names)} FROM signalbox.jobs WHERE id = %s".encode(), (job_id,)).fetchone()
    assert row is not None
    return tuple(row)


def keep(db: psycopg.Connection, *job_types: JobType) -> None:
    keep_job_types(db, [ENGINE, replace(ENGINE, name="shop", job_types=job_types)], ())


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PARCELS)
def test_sql_and_python_refuse_the_same_payloads(db: psycopg.Connection, payload: dict[str, Any]) -> None:
    text, schema = json.dumps(payload), json.dumps(schema_of(Parcel))
    row = db.execute("SELECT signalbox.schema_faults(%s::jsonb, %s::jsonb)", (schema, text)).fetchone()
    assert row is not None
    try:
        Parcel.model_validate_json(text, strict=True)
        refused = False
    except ValidationError:
        refused = True
    assert bool(row[0]) == refused, row[0]


def test_a_fault_names_its_field_and_no_value(db: psycopg.Connection) -> None:
    payload = {"to": {"street": "secret-street", "numbr": 1}, "count": 9, "stops": [{}]}
    row = db.execute(
        "SELECT signalbox.schema_faults(%s, %s)", (Jsonb(schema_of(Parcel)), Jsonb(payload | {"weight": "5"}))
    ).fetchone()
    assert row is not None
    assert sorted(row[0]) == [
        "field 'count' is out of its range",
        "field 'stops.0.street' is missing",
        "field 'to.street' has 13 characters",
        "field 'weight' is no number",
    ]


def test_only_types_whose_schema_says_all_have_no_validators() -> None:
    def has_own_checks(model: type[JobPayload]) -> bool:
        known = RegisteredJobType(JobType("parcel", "a parcel", __name__))
        known.__dict__ |= {"model": model, "_check": None}
        return has_validators(known)

    assert (has_own_checks(Parcel), has_own_checks(Checked)) == (False, True)


def test_a_job_is_stored_as_its_type_says(db: psycopg.Connection) -> None:
    job_id = submit(db, tenant="acme", priority=2, tags=["a"], metadata={"b": 1}, name="n", max_attempts=2)
    assert columns(db, job_id, "status", "lane", "tenant", "tags", "metadata", "job_name", "max_attempts") == (
        *("pending", "high", "acme", ["a"], {"b": 1}, "n", 2),
    )
    later = submit(db, delay_seconds=90, timeout_seconds=2.5)
    found = columns(db, later, "send_at = scheduled_for", "scheduled_for - created_at", "timeout_ms")
    assert (found[0], found[1] > timedelta(seconds=89), found[2]) == (True, True, 2500)


def test_a_key_that_came_before_gives_the_first_job(db: psycopg.Connection) -> None:
    assert submit(db, idempotency_key="k") == submit(db, idempotency_key="k") != submit(db, idempotency_key="other")


def test_a_submit_that_is_rolled_back_leaves_nothing(db: psycopg.Connection) -> None:
    with db.transaction(force_rollback=True):
        submit(db, group="g")
    assert db.execute("SELECT count(*) FROM signalbox.jobs").fetchone() == (0,)
    assert db.execute("SELECT count(*) FROM signalbox.job_groups").fetchone() == (0,)


def test_jobs_of_a_group_are_counted_with_the_commit(db: psycopg.Connection) -> None:
    with db.transaction():
        submit(db, group="g")
        submit(db, group="g")
    assert db.execute("SELECT total FROM signalbox.job_groups WHERE id = 'g'").fetchone() == (2,)


def test_a_cap_of_the_type_or_of_each_tenant_counts_the_job(db: psycopg.Connection) -> None:
    keep(
        db,
        JobType("parcel", "a parcel", __name__, cap=TypeCap(max_running=3)),
        JobType("checked", "a number", __name__, cap=TypeCap(1, per="tenant")),
    )
    assert columns(db, submit(db, "parcel", '{"to": {"street": "ab"}}'), "cap_key") == (None,)
    assert columns(db, submit(db, "checked", '{"even": 2}', tenant="acme"), "cap_key") == ("checked acme",)
    found = db.execute("SELECT kind, key, max_running, by_default FROM signalbox.job_caps ORDER BY kind").fetchall()
    assert found == [("key", "checked acme", 1, True), ("type", "parcel", 3, True)]


@pytest.mark.parametrize(
    ("job_type", "payload", "options", "said"),
    [
        ("run_tusk", TASK, {}, "job type 'run_tusk' is not registered: the table signalbox.job_types lists"),
        ("run_task", '{"task": 3}', {}, "payload of job type 'run_task' refused: field 'task' is no string"),
        ("run_task", "[]", {}, "payload of job type 'run_task' refused: the payload is no object"),
        ("run_task", TASK, {"dely": 1}, "there is no option 'dely'; there are idempotency_key, "),
        ("run_task", TASK, {"priority": 0}, "priority 0 is not between 1"),
        ("deliver_notification", '{"channel": "sms", "body": "b"}', {"lane": "heavy"}, "may not run in lane 'heavy'"),
        ("run_task", TASK, {"delay_seconds": 1, "at": "2030-01-01T00:00:00Z"}, "give delay_seconds or at"),
        ("run_task", TASK, {"delay_seconds": -1}, "delay_seconds is not between 0 and a year"),
        ("run_task", TASK, {"timeout_seconds": 331}, "a time-out of 331 s is not above zero"),
        ("run_task", TASK, {"max_attempts": 101}, "max_attempts 101 is not between 1 and 100"),
        ("run_task", json.dumps({"task": "t" * 200_001}), {}, "its payload has more than 200 kB"),
    ],
)
def test_what_is_wrong_is_named(
    db: psycopg.Connection, job_type: str, payload: str, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refused:
        submit(db, job_type, payload, **options)
    assert said in str(refused.value)
    assert db.execute("SELECT count(*) FROM signalbox.jobs").fetchone() == (0,)


def test_a_deploy_keeps_the_table_of_types_as_the_packs_are(db: psycopg.Connection) -> None:
    def rows() -> list[Any]:
        return db.execute(
            "SELECT name, updated_at FROM signalbox.job_types WHERE pack = 'shop' ORDER BY name"
        ).fetchall()

    parcel, checked = JobType("parcel", "a parcel", __name__), JobType("checked", "a number", __name__)
    keep(db, parcel, checked)
    before = rows()
    keep(db, parcel, checked)
    assert (rows(), len(before)) == (before, 2)
    keep(db, parcel)
    assert rows() == before[1:]
    keep_job_types(db, [ENGINE], newer={"shop"})
    assert rows() == before[1:]
    keep_job_types(db, [ENGINE], newer=())
    assert rows() == []


def test_a_job_is_sent_by_the_next_run_of_dispatch_jobs(stage: Stage, lanes: AwsStandIn) -> None:
    job_id = submit(stage.db, tenant="acme", priority=9)
    stage.run("dispatch_jobs", datetime.now(UTC))
    assert lanes.take() == [{"lane": "low", "job_id": job_id, "delay": 0, "group": "acme"}]
    assert stage.status(job_id) == "queued"


def test_a_job_has_its_types_own_key_for_caps_before_it_is_sent(stage: Stage, lanes: AwsStandIn) -> None:
    payload = {"url": "https://a.example/hook", "event_type": "paid", "secret": "k", "event": {}}
    in_sql = submit(stage.db, "deliver_webhook", json.dumps(payload), tenant="acme")
    stage.run("dispatch_jobs", datetime.now(UTC))
    assert [message["job_id"] for message in lanes.take()] == [in_sql]
    assert count(stage.db, "signalbox.job_caps WHERE by_default") == 1
    in_python = stage.submit("deliver_webhook", payload=payload, tenant="acme")
    assert stage.job(in_sql)["cap_key"] == stage.job(in_python)["cap_key"] == "deliver_webhook acme a.example:443"
    stage.submit("deliver_webhook", payload=payload | {"url": "https://b.example/hook"}, tenant="acme")
    assert count(stage.db, "signalbox.job_caps WHERE by_default") == 2


def test_payload_refused_only_by_its_types_code_fails_permanently_when_claimed(stage: Stage) -> None:
    payload = {"url": "ftp://a.example", "event_type": "paid", "secret": "k"}
    job_id = submit(stage.db, "deliver_webhook", json.dumps(payload))
    assert [(ended.id, ended.status) for ended in stage.drain()] == [(job_id, "failed")]
    assert stage.dead_letter(job_id)["failure_reason"] == "permanent"
