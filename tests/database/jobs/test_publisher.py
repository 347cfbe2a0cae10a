"""Each change of a job's status is published once committed, no matter who made it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from signalbox.budget import Budget
from signalbox.jobs.dependency import Dependency
from signalbox.ledger.context import Context
from signalbox.operate import bulk_actions
from signalbox.operate.audit import Actor
from signalbox.operate.filters import JobFilter
from signalbox.submit.new_job import NewJob
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.stage import Stage
from tests.support.contexts import context_of
from tests.support.jobs import obeying

FAILING = obeying("fail_for_good")


@pytest.fixture
def bus(invokes: AwsStandIn) -> AwsStandIn:
    return invokes


@pytest.fixture
def stage(stage: Stage) -> Stage:
    return stage.another(event_bus="changes")


def published(bus: AwsStandIn) -> list[tuple[str, str]]:
    """Return job and status of each event since the last call, sorted."""
    found = sorted((change["job_id"], change["status"]) for change in bus.details)
    bus.events.clear()
    return found


def work_off(stage: Stage, *jobs: NewJob | str) -> list[str]:
    ids = [stage.submit(job) for job in jobs]
    stage.work(*ids)
    return ids


def run_task(stage: Stage, task: str) -> None:
    stage.run(task, datetime.now(UTC), force=True)


def test_worker_publishes_the_start_and_the_end(stage: Stage, bus: AwsStandIn) -> None:
    good, bad = work_off(stage, "do_nothing", FAILING)
    assert published(bus) == sorted([(good, "running"), (good, "completed"), (bad, "running"), (bad, "failed")])


@pytest.mark.parametrize("events", ["ends", "none"])
def test_stack_can_publish_only_ends_or_nothing(stage: Stage, bus: AwsStandIn, events: str) -> None:
    settings = stage.app.resources.settings.model_copy(update={"job_events": events})
    stage.app = replace(stage.app, resources=replace(stage.app.resources, settings=settings))
    good, bad = work_off(stage, "do_nothing", FAILING)
    assert published(bus) == (sorted([(good, "completed"), (bad, "failed")]) if events == "ends" else [])


@pytest.mark.usefixtures("notes")
def test_job_whose_transaction_failed_publishes_only_its_new_status(
    stage: Stage, bus: AwsStandIn, db: psycopg.Connection
) -> None:
    """The commit refused the job's end together with its effects."""
    db.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE 'no' USING ERRCODE = 'serialization_failure'; END $$"
    )
    db.execute(
        "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON notes DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION refuse()"
    )
    [job_id] = work_off(stage, "note_job")
    assert stage.status(job_id) == "pending"
    assert published(bus) == [(job_id, "pending"), (job_id, "running")]
    assert [message["delay"] > 0 for message in bus.take()] == [True]


def test_failed_dependents_are_published_with_their_parent(stage: Stage, bus: AwsStandIn) -> None:
    parent = stage.submit(FAILING)
    fails, goes_down, goes_on = (
        stage.submit("do_nothing", depends_on=[Dependency(parent, on_failure=policy)])
        for policy in ("fail", "cancel", "proceed")
    )
    stage.work(parent)
    expected = [(parent, "running"), (parent, "failed"), (fails, "failed"), (goes_down, "cancelled")]
    assert published(bus) == sorted(expected)
    assert [message["job_id"] for message in bus.take()] == [goes_on]


def test_dependents_of_a_cancelled_job_are_published_too(stage: Stage, bus: AwsStandIn) -> None:
    parent = stage.submit("do_nothing")
    child = stage.submit("do_nothing", depends_on=[Dependency(parent, on_failure="cancel")])
    stage.operate("cancel_jobs", ids=[parent])
    assert published(bus) == sorted([(parent, "cancelled"), (child, "cancelled")])


def test_jobs_that_a_bulk_action_changes_later_are_published(stage: Stage, bus: AwsStandIn) -> None:
    job_id = stage.submit("do_nothing", tenant="acme")
    bulk_actions.create(stage.db, "pause", JobFilter(tenant="acme"), Actor("jo"), Budget.of(60))
    stage.db.execute("UPDATE signalbox.bulk_actions SET leased_until = NULL")
    run_task(stage, "advance_bulk_actions")
    assert published(bus) == [(job_id, "paused")]


def test_job_paused_at_its_claim_is_published(stage: Stage, bus: AwsStandIn) -> None:
    stage.operate("pause", kind="type", key="do_nothing")
    [job_id] = work_off(stage, "do_nothing")
    assert published(bus) == [(job_id, "paused")]


def test_duplicate_message_publishes_nothing(stage: Stage, bus: AwsStandIn) -> None:
    jobs = work_off(stage, "do_nothing")
    published(bus)
    stage.work(*jobs)
    assert published(bus) == []


def test_dispatch_publishes_jobs_it_queues_but_not_those_it_resends(
    stage: Stage, bus: AwsStandIn, db: psycopg.Connection
) -> None:
    later, lost = stage.submit("do_nothing", delay=timedelta(hours=1)), stage.submit("do_nothing")
    db.execute("UPDATE signalbox.jobs SET scheduled_for = now(), send_at = now() WHERE id = %s", (later,))
    db.execute("UPDATE signalbox.jobs SET send_at = now() WHERE id = %s", (lost,))
    run_task(stage, "dispatch_jobs")
    assert published(bus) == [(later, "queued")]


def test_rescue_publishes_the_jobs_it_takes_back(stage: Stage, bus: AwsStandIn, db: psycopg.Connection) -> None:
    again, last = stage.submit("do_nothing"), stage.submit("do_nothing", max_attempts=1)
    claim = "SELECT FROM signalbox.claim_jobs(%s::uuid[], gen_random_uuid(), 'lost', NULL, interval '-1 s')"
    db.execute(claim, ([again, last],))
    run_task(stage, "rescue_jobs")
    assert published(bus) == sorted([(again, "pending"), (last, "failed")])


def test_redrive_publishes_the_redriven_job(stage: Stage, bus: AwsStandIn) -> None:
    [job_id] = work_off(stage, FAILING)
    published(bus)
    [letter] = stage.operate("list_dead_letters")["dead_letters"]
    stage.operate("redrive", ids=[letter["id"]], by="warden", reason="mended")
    assert published(bus) == [(job_id, "pending")]


@pytest.fixture
def context(stage: Stage) -> Context:
    return context_of(stage, "any_task", datetime.now(UTC))


def test_jobs_that_a_task_submits_are_sent_and_published(stage: Stage, bus: AwsStandIn, context: Context) -> None:
    [job] = context.submit([NewJob(job_type="do_nothing")])
    assert published(bus) == [(job.id, "queued")]
    assert [message["job_id"] for message in bus.take()] == [job.id]


def test_of_what_a_task_submits_in_a_transaction_nobody_hears_before_the_commit(
    stage: Stage, bus: AwsStandIn, context: Context, db: psycopg.Connection
) -> None:
    with context.db.transaction(force_rollback=True):
        context.submit([NewJob(job_type="do_nothing")])
    assert (published(bus), bus.take()) == ([], [])
    assert db.execute("SELECT count(*) FROM signalbox.jobs").fetchone() == (0,)


def test_a_bus_that_refuses_keeps_nobody_from_anything(stage: Stage, bus: AwsStandIn) -> None:
    bus.away.add("bus")
    [job_id] = work_off(stage, "do_nothing")
    assert stage.status(job_id) == "completed"
