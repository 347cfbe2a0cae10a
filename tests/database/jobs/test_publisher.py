"""Each change of a job's status is told on the bus, whoever made it, and only once it is committed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from signalbox.jobs.dependency import Dependency
from signalbox.ledger.context import Context
from signalbox.packs.registries import JobTypeRegistry
from signalbox.submit.new_job import NewJob
from tests.support.bus_stand_in import BusStandIn
from tests.support.contexts import context_of
from tests.support.invoke_recorder import InvokeRecorder
from tests.support.jobs_stage import JobsStage, sqs_event

FAIL = {"word": "fail_for_good"}


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch) -> Iterator[BusStandIn]:
    with BusStandIn() as bus:
        monkeypatch.setenv("AWS_ENDPOINT_URL_EVENTBRIDGE", bus.url)
        yield bus


@pytest.fixture
def stage(
    dsn: str,
    moto: str,
    invokes: InvokeRecorder,
    job_types: JobTypeRegistry,
    bus: BusStandIn,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[JobsStage]:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto)
    with JobsStage(dsn, invokes, job_types, event_bus="changes") as stage:
        yield stage
        stage.drop_lanes()


def told(bus: BusStandIn) -> list[tuple[str, str]]:
    """Job and status of each event since the last time, in no order."""
    found = sorted((change["job_id"], change["status"]) for change in bus.told)
    bus.told.clear()
    return found


def run_task(stage: JobsStage, task: str) -> None:
    stage.invoke(task, datetime.now(UTC), force=True)


def test_a_worker_tells_of_the_beginning_and_the_end(stage: JobsStage, bus: BusStandIn) -> None:
    good, bad = (job.id for job in stage.work_off("do_nothing", NewJob(job_type="obey", payload=FAIL)))
    assert told(bus) == sorted([(good, "running"), (good, "completed"), (bad, "running"), (bad, "failed")])


@pytest.mark.parametrize("events", ["ends", "none"])
def test_a_stack_may_be_told_to_tell_of_ends_alone_or_of_nothing(
    stage: JobsStage, bus: BusStandIn, events: str
) -> None:
    settings = stage.engine.resources.settings.model_copy(update={"job_events": events})
    stage.engine = replace(stage.engine, resources=replace(stage.engine.resources, settings=settings))
    good, bad = (job.id for job in stage.work_off("do_nothing", NewJob(job_type="obey", payload=FAIL)))
    assert told(bus) == (sorted([(good, "completed"), (bad, "failed")]) if events == "ends" else [])


def test_of_a_job_whose_transaction_did_not_commit_nothing_is_told_but_what_it_became(
    stage: JobsStage, bus: BusStandIn, db: psycopg.Connection
) -> None:
    """Its end was written with its effects, and the commit refused both."""
    db.execute("CREATE TABLE notes (job_id uuid, subject text)")
    db.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE 'no' USING ERRCODE = 'serialization_failure'; END $$"
    )
    db.execute(
        "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON notes DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION refuse()"
    )
    [job] = stage.work_off("note_job")
    assert stage.status_of(job.id) == "pending"
    assert told(bus) == [(job.id, "pending"), (job.id, "running")]
    assert stage.delayed("normal") == 1


def test_who_waited_in_vain_is_told_of_with_who_failed(stage: JobsStage, bus: BusStandIn) -> None:
    [parent] = stage.submit(NewJob(job_type="obey", payload=FAIL))
    waits = [
        NewJob(job_type="do_nothing", depends_on=[Dependency(parent.id, on_failure=policy)])
        for policy in ("fail", "cancel", "proceed")
    ]
    fails, goes_down, goes_on = (job.id for job in stage.submit(*waits))
    stage.work(sqs_event([parent]))
    expected = [(parent.id, "running"), (parent.id, "failed"), (fails, "failed"), (goes_down, "cancelled")]
    assert told(bus) == sorted(expected)
    assert [message["job_id"] for message in stage.receive("normal")] == [goes_on]


def test_who_waited_for_a_cancelled_one_is_told_of_as_well(stage: JobsStage, bus: BusStandIn) -> None:
    [parent] = stage.submit("do_nothing")
    [child] = stage.submit(NewJob(job_type="do_nothing", depends_on=[Dependency(parent.id, on_failure="cancel")]))
    stage.operate("cancel_jobs", ids=[parent.id])
    assert told(bus) == sorted([(parent.id, "cancelled"), (child.id, "cancelled")])


def test_what_a_pause_holds_back_at_its_claim_is_told_of(stage: JobsStage, bus: BusStandIn) -> None:
    stage.operate("pause", kind="type", key="do_nothing")
    [job] = stage.work_off("do_nothing")
    assert told(bus) == [(job.id, "paused")]


def test_a_message_that_comes_twice_tells_nothing_new(stage: JobsStage, bus: BusStandIn) -> None:
    jobs = stage.work_off("do_nothing")
    told(bus)
    stage.work(sqs_event(jobs))
    assert told(bus) == []


def test_dispatch_tells_of_what_is_queued_by_it_and_not_of_what_it_only_sends_again(
    stage: JobsStage, bus: BusStandIn, db: psycopg.Connection
) -> None:
    later, lost = stage.submit(NewJob(job_type="do_nothing", delay=timedelta(hours=1)), "do_nothing")
    db.execute("UPDATE signalbox.jobs SET scheduled_for = now(), send_at = now() WHERE id = %s", (later.id,))
    db.execute("UPDATE signalbox.jobs SET send_at = now() WHERE id = %s", (lost.id,))
    run_task(stage, "dispatch_jobs")
    assert told(bus) == [(later.id, "queued")]


def test_rescue_tells_of_what_it_takes_back(stage: JobsStage, bus: BusStandIn, db: psycopg.Connection) -> None:
    again, last = stage.submit("do_nothing", NewJob(job_type="do_nothing", max_attempts=1))
    claim = "SELECT FROM signalbox.claim_jobs(%s::uuid[], gen_random_uuid(), 'lost', NULL, interval '-1 s')"
    db.execute(claim, ([again.id, last.id],))
    run_task(stage, "rescue_jobs")
    assert told(bus) == sorted([(again.id, "pending"), (last.id, "failed")])


def test_a_redrive_tells_of_what_begins_anew(stage: JobsStage, bus: BusStandIn) -> None:
    [job] = stage.work_off(NewJob(job_type="obey", payload=FAIL))
    told(bus)
    [letter] = stage.operate("list_dead_letters")["dead_letters"]
    stage.operate("redrive", ids=[letter["id"]], by="warden", reason="mended")
    assert told(bus) == [(job.id, "pending")]


@pytest.fixture
def context(stage: JobsStage) -> Context:
    return context_of(stage, "any_task", datetime.now(UTC))


def test_a_task_submits_jobs_that_are_sent_and_told_of(stage: JobsStage, bus: BusStandIn, context: Context) -> None:
    [job] = context.submit([NewJob(job_type="do_nothing")])
    assert told(bus) == [(job.id, "queued")]
    assert [message["job_id"] for message in stage.receive("normal")] == [job.id]


def test_of_what_a_task_submits_in_a_transaction_nobody_hears_before_the_commit(
    stage: JobsStage, bus: BusStandIn, context: Context, db: psycopg.Connection
) -> None:
    with context.db.transaction(force_rollback=True):
        context.submit([NewJob(job_type="do_nothing")])
    assert (told(bus), stage.receive("normal")) == ([], [])
    assert db.execute("SELECT count(*) FROM signalbox.jobs").fetchone() == (0,)


def test_a_bus_that_refuses_keeps_nobody_from_anything(stage: JobsStage, bus: BusStandIn) -> None:
    bus.refuses = True
    [job] = stage.work_off("do_nothing")
    assert stage.status_of(job.id) == "completed"
