"""A type makes lane, time-out, name and tags of its payload; a submit replaces a job that waits. SQL does the same."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from signalbox.engine_pack import ENGINE
from signalbox.errors import JobRefused, JobTypeUnknown, Refused
from signalbox.migrate.job_types import keep_job_types
from signalbox.packs.job_type import JobType, Lane, Route
from signalbox.packs.pack import Pack
from signalbox.packs.registries import JobTypeRegistry
from signalbox.submit.insert import submit
from signalbox.submit.new_job import NewJob
from signalbox.testing.rows import count
from signalbox.testing.stage import Stage
from tests.support.attempts import attempt, claim
from tests.support.lock_waits import wait_until_blocked

MODULE, HOUR = "tests.support.jobs", timedelta(hours=1)
LANES = {"small": Lane.HIGH, "large": Lane.HEAVY}
TYPES = (
    JobType(
        "scan_file",
        "scans",
        f"{MODULE}.scan_file",
        route=Route("size", LANES, {"large": timedelta(seconds=840)}),
        tags={"session": "session", "size": "size"},
        job_name="Scan of {file_id} ({size})",
        correlation="owner",
    ),
    JobType("do_nothing", "completes at once", f"{MODULE}.do_nothing"),
    JobType("note_job", "notes itself", f"{MODULE}.note_job", tags={"own": "id"}),
)
NAMES: dict[str, Any] = {"aliases": {"read_file": "scan_file"}, "reserved": {"print_file": "nobody has asked"}}
SHOP = Pack("shop", (), ENGINE.migrations, TYPES, **NAMES)
REGISTRY = JobTypeRegistry.of([SHOP])
Submit = Callable[..., dict[str, Any]]


@pytest.fixture
def stage(stage: Stage) -> Stage:
    keep_job_types(stage.db, [ENGINE, SHOP], ())
    return stage


@pytest.fixture(params=["python", "sql"])
def add(request: pytest.FixtureRequest, stage: Stage) -> Submit:
    """Submit a job in either way, and return its row."""

    def in_python(job_type: str, payload: dict[str, Any], **fields: Any) -> dict[str, Any]:
        if "delay_seconds" in fields:
            fields["delay"] = timedelta(seconds=fields.pop("delay_seconds"))
        [one] = submit(stage.db, REGISTRY, [NewJob(job_type, payload, **fields)], datetime.now(UTC))
        return stage.job(one.id)

    def in_sql(job_type: str, payload: dict[str, Any], **options: Any) -> dict[str, Any]:
        return stage.job(submit_in_sql(stage.db, job_type, payload, **options))

    return in_python if request.param == "python" else in_sql


def submit_in_sql(db: psycopg.Connection[Any], job_type: str, payload: dict[str, Any], **options: Any) -> str:
    statement = "SELECT signalbox.submit_job(%s, %s, %s)::text"
    [(id_,)] = db.execute(statement, (job_type, Jsonb(payload), Jsonb(options))).fetchall()
    return str(id_)


REFUSED = (Refused, psycopg.errors.InvalidParameterValue)


# ---- by payload


def test_payload_decides_on_lane_time_out_name_and_tags(add: Submit) -> None:
    job = add("scan_file", {"file_id": "f-1", "size": "large", "session": "s-1"}, tags=["night"])
    assert (job["lane"], job["timeout_ms"], job["job_name"]) == ("heavy", 840_000, "Scan of f-1 (large)")
    assert sorted(job["tags"]) == ["night", "session:s-1", "size:large"]


def test_field_that_is_left_out_has_its_default_and_one_that_is_null_no_tag(add: Submit) -> None:
    job = add("scan_file", {"file_id": "f-1"})
    assert (job["lane"], job["timeout_ms"], job["job_name"]) == ("high", 300_000, "Scan of f-1 (small)")
    assert job["tags"] == ["size:small"]


@pytest.mark.parametrize(
    ("payload", "fields", "words"),
    [
        ({}, {"lane": "low"}, "lane 'low' contradicts the size 'small', which is for lane 'high'"),
        ({"size": "huge"}, {}, "no lane is for the size 'huge'"),
        ({}, {"name": "mine"}, "its type names it by the payload: give no name"),
        ({}, {"category": "urgent"}, "there is no category 'urgent'"),
        ({}, {"correlation_id": "c"}, "takes its correlation_id from the payload: give none"),
        ({}, {"replace_key": "k", "idempotency_key": "i"}, "goes with no idempotency_key"),
        ({}, {"replace_key": ""}, "replace_key is not a text of 1 to 200 characters"),
    ],
)
def test_submit_that_contradicts_its_type_is_refused(
    add: Submit, payload: dict[str, Any], fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(REFUSED, match=words):
        add("scan_file", {"file_id": "f-1", **payload}, **fields)


def test_job_is_tagged_with_its_own_id(add: Submit) -> None:
    job = add("note_job", {"subject": "s"})
    assert job["tags"] == [f"own:{job['id']}"]
    with pytest.raises(REFUSED, match="its type tags it with its id"):
        add("note_job", {"subject": "s"}, replace_key="k")


def test_ids_in_a_payload_are_stored_in_lower_case(add: Submit) -> None:
    job = add("scan_file", {"file_id": "F-1", "owner": "5EB1F6C0-0A83-4B57-8D4E-1D3C5E2A9F00"})
    assert (job["payload"]["owner"], job["payload"]["file_id"]) == ("5eb1f6c0-0a83-4b57-8d4e-1d3c5e2a9f00", "F-1")
    assert job["correlation_id"] == job["payload"]["owner"]


def test_submit_gives_another_category(add: Submit) -> None:
    assert add("do_nothing", {})["job_category"] == "standard"
    assert add("do_nothing", {}, category="critical")["job_category"] == "critical"


def test_many_jobs_are_routed_one_by_one(stage: Stage) -> None:
    jobs = [NewJob("scan_file", {"file_id": str(place), "size": list(LANES)[place % 2]}) for place in range(300)]
    found = submit(stage.db, REGISTRY, jobs, datetime.now(UTC))
    assert [one.lane for one in found] == ["high", "heavy"] * 150
    assert count(stage.db, "signalbox.jobs WHERE lane = 'heavy' AND timeout_ms = 840000") == 150


# ---- other names


def test_job_under_another_name_is_stored_under_its_types_with_a_tag(add: Submit) -> None:
    job = add("read_file", {"file_id": "f-1"})
    assert (job["job_type"], sorted(job["tags"])) == ("scan_file", ["as:read_file", "size:small"])


def test_reserved_name_is_refused_with_its_reason(add: Submit) -> None:
    with pytest.raises((JobTypeUnknown, psycopg.errors.InvalidParameterValue), match="'print_file': nobody has asked"):
        add("print_file", {})


@pytest.mark.parametrize("aliases", [{"scan_file": "do_nothing"}, {"other": "nothing"}])
def test_name_that_a_type_has_or_that_leads_nowhere_is_refused_at_the_start(aliases: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="can't be another name of job type"):
        JobTypeRegistry.of([Pack("shop", (), ENGINE.migrations, TYPES, aliases=aliases)])


def test_names_go_with_their_pack_unless_newer_code_has_stored_them(stage: Stage) -> None:
    keep_job_types(stage.db, [ENGINE], ["shop"])
    assert count(stage.db, "signalbox.job_type_names") == 2
    keep_job_types(stage.db, [ENGINE], ())
    assert count(stage.db, "signalbox.job_type_names") == 0


# ---- replaced while it waits


def test_job_that_waits_is_replaced_and_its_wait_begins_anew(add: Submit, stage: Stage) -> None:
    first = add("scan_file", {"file_id": "f-1"}, replace_key="k", delay_seconds=60)
    second = add("scan_file", {"file_id": "f-2"}, replace_key="k", delay_seconds=3600)
    assert (second["id"], second["payload"]["file_id"], second["job_name"]) == (
        first["id"],
        "f-2",
        "Scan of f-2 (small)",
    )
    assert second["scheduled_for"] - first["scheduled_for"] > timedelta(minutes=58)
    assert second["send_at"] == second["scheduled_for"]
    third = add("scan_file", {"file_id": "f-3"}, replace_key="k")
    assert (third["payload"]["file_id"], third["scheduled_for"]) == ("f-3", second["scheduled_for"])
    assert add("scan_file", {"file_id": "f-4"}, replace_key="other")["id"] != first["id"]
    assert count(stage.db, "signalbox.jobs") == 2


def test_job_that_waits_goes_to_the_lane_of_its_new_payload(add: Submit) -> None:
    first = add("scan_file", {"file_id": "f-1"}, replace_key="k", delay_seconds=60)
    second = add("scan_file", {"file_id": "f-1", "size": "large"}, replace_key="k")
    assert (second["id"], second["lane"], second["timeout_ms"]) == (first["id"], "heavy", 840_000)


def test_tenants_with_one_key_replace_their_own_jobs(add: Submit, stage: Stage) -> None:
    ids = [add("do_nothing", {}, replace_key="k", tenant=tenant)["id"] for tenant in ("acme", "other", None, "acme")]
    assert (ids[3], len(set(ids)), count(stage.db, "signalbox.jobs")) == (ids[0], 3, 3)


def test_job_that_is_in_its_lane_is_replaced_and_one_that_has_begun_is_not(add: Submit, stage: Stage) -> None:
    first = add("do_nothing", {}, replace_key="k", metadata={"number": 1})
    stage.db.execute("UPDATE signalbox.jobs SET status = 'queued', queued_at = now() WHERE id = %s", (first["id"],))
    assert add("do_nothing", {}, replace_key="k", metadata={"number": 2}, delay_seconds=60)["id"] == first["id"]
    job = stage.job(str(first["id"]))
    assert (job["metadata"], job["status"], job["send_at"]) == ({"number": 2}, "queued", first["send_at"])
    claim(stage.db, str(first["id"]))
    assert add("do_nothing", {}, replace_key="k")["id"] != first["id"]


def test_paused_job_is_replaced_and_stays_paused(add: Submit, stage: Stage) -> None:
    first = add("do_nothing", {}, replace_key="k", delay_seconds=60)
    stage.operate("pause", ids=[str(first["id"])])
    second = add("do_nothing", {}, replace_key="k", delay_seconds=3600)
    assert (second["id"], second["status"], second["send_at"]) == (first["id"], "paused", None)


def test_of_two_with_one_key_in_a_submit_the_last_wins(stage: Stage) -> None:
    jobs = [NewJob("scan_file", {"file_id": name}, replace_key="k") for name in ("f-1", "f-2")]
    one, two = submit(stage.db, REGISTRY, jobs, datetime.now(UTC))
    assert (one.id, one.created, two.created) == (two.id, True, False)
    assert stage.job(one.id)["payload"]["file_id"] == "f-2"


@pytest.mark.parametrize("fields", [{"group": "g"}, {"id": "00000000-0000-7000-8000-000000000001"}])
def test_replaced_job_is_in_no_group_and_has_no_id_of_its_own(stage: Stage, fields: dict[str, Any]) -> None:
    with pytest.raises(JobRefused, match="they would be another job's"):
        submit(stage.db, REGISTRY, [NewJob("do_nothing", replace_key="k", **fields)], datetime.now(UTC))


@pytest.mark.parametrize("begins", [True, False])
def test_submit_waits_for_a_claim_and_then_replaces_or_stores(stage: Stage, other: Stage, begins: bool) -> None:
    """A claim that commits leaves the next submit a job of its own; one that is undone leaves it the first."""
    job = NewJob("do_nothing", replace_key="k")
    [first] = submit(stage.db, REGISTRY, [job], datetime.now(UTC))
    with ThreadPoolExecutor(1) as thread:
        with other.db.transaction() as transaction:
            claim(other.db, first.id)
            second = thread.submit(submit, stage.db, REGISTRY, [job], datetime.now(UTC))
            wait_until_blocked(other.db)
            if not begins:
                raise psycopg.Rollback(transaction)
        [found] = second.result()
    assert (found.created, found.id == first.id) == (begins, not begins)


# ---- estimates


def test_how_long_a_types_jobs_take_is_measured_and_kept_with_new_jobs(add: Submit, stage: Stage) -> None:
    attempt(stage.db, str(add("do_nothing", {})["id"]))
    stage.db.execute(
        "UPDATE signalbox.job_executions SET started_at = started_at - interval '2 min', "
        "completed_at = started_at - interval '2 min' + interval '1.2 s'"
    )
    assert add("do_nothing", {})["estimated_duration"] is None
    stage.run("roll_up_metrics", datetime.now(UTC))
    seconds = add("do_nothing", {})["estimated_duration"].total_seconds()
    assert 1 <= seconds <= 1.5
    many = submit(stage.db, REGISTRY, [NewJob("do_nothing")] * 300, datetime.now(UTC))
    assert stage.job(many[7].id)["estimated_duration"].total_seconds() == seconds
    keep_job_types(stage.db, [ENGINE, SHOP], ())
    assert add("do_nothing", {})["estimated_duration"].total_seconds() == seconds, "a deploy keeps it"
