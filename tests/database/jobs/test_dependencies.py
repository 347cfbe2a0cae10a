"""No job begins before its parents or waits for ever, whatever happens at once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psycopg
import pytest

from signalbox.errors import JobRefused
from signalbox.jobs.dependency import Dependency
from signalbox.submit.new_job import NewJob
from signalbox.testing.rows import count
from signalbox.testing.stage import Stage
from tests.support.attempts import attempt, claim, end
from tests.support.lock_waits import overlapping

HOUR = timedelta(hours=1)
LONG = 400  # jobs in a chain: more than the server's stack could hold as calls


@pytest.fixture
def third(stage: Stage, dsn: str) -> Iterator[Stage]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield stage.beside(connection)


def pause(stage: Stage, job_id: str) -> None:
    stage.operate("pause", ids=[job_id], by="jo")


def chain(length: int, **fields: str) -> list[NewJob]:
    """Return jobs that each wait for the one before."""
    ids = [str(uuid4()) for _ in range(length)]
    waits = [[], *([Dependency(id_, **fields)] for id_ in ids)]  # type: ignore[arg-type]
    return [NewJob(job_type="do_nothing", id=id_, depends_on=depends) for id_, depends in zip(ids, waits, strict=False)]


# ---- parents that end later


def test_a_job_goes_when_the_last_of_its_parents_has_ended(stage: Stage) -> None:
    first, second = stage.submit("do_nothing"), stage.submit("do_nothing")
    child = stage.submit("do_nothing", depends_on=[Dependency(first), Dependency(second)])
    assert attempt(stage.db, first) == set()
    assert claim(stage.db, child) == set()
    assert attempt(stage.db, second) == {child}
    assert claim(stage.db, child) == {child}


def test_both_parents_in_one_batch_release_their_child_once(stage: Stage) -> None:
    parents = [stage.submit("do_nothing"), stage.submit("do_nothing")]
    child = stage.submit("do_nothing", depends_on=[Dependency(parent) for parent in parents])
    assert attempt(stage.db, *parents) == {child}
    assert stage.job(child)["unmet_dependencies"] == 0


@pytest.mark.parametrize(
    ("kind", "on_failure", "end", "becomes"),
    [
        ("success", "fail", "completed", "pending"),
        ("success", "fail", "failed", "failed"),
        ("success", "fail", "cancelled", "failed"),
        ("success", "cancel", "failed", "cancelled"),
        ("success", "cancel", "cancelled", "cancelled"),
        ("success", "proceed", "failed", "pending"),
        ("completion", "fail", "failed", "pending"),
        ("completion", "fail", "cancelled", "pending"),
    ],
)
@pytest.mark.parametrize("ended_before", [False, True])
def test_the_policy_says_what_becomes_of_the_child(
    stage: Stage, kind: str, on_failure: str, end: str, becomes: str, *, ended_before: bool
) -> None:
    parent = stage.submit("do_nothing")
    wait = Dependency(parent, kind, on_failure)  # type: ignore[arg-type]
    if ended_before:
        attempt(stage.db, parent, status=end)
        child = stage.submit("do_nothing", depends_on=[wait])
        becomes = "queued" if becomes == "pending" else becomes
    else:
        child = stage.submit("do_nothing", depends_on=[wait])
        assert attempt(stage.db, parent, status=end) == ({child} if becomes == "pending" else set())
    assert stage.status(child) == becomes
    assert claim(stage.db, child) == ({child} if becomes in ("pending", "queued") else set())


def test_job_failed_by_its_parent_has_a_dead_letter_and_no_attempt(stage: Stage) -> None:
    parent = stage.submit("do_nothing")
    child = stage.submit("do_nothing", depends_on=[Dependency(parent)], tenant="acme")
    attempt(stage.db, parent, status="failed")
    job = stage.job(child)
    assert (job["attempts"], job["executions"], job["error_details"]["type"]) == (0, 0, "DependencyFailed")
    assert job["unmet_dependencies"] == 0
    letter = stage.db.execute(
        "SELECT failure_reason, error_type, tenant FROM signalbox.dead_letter_jobs WHERE original_job_id = %s", (child,)
    ).fetchone()
    assert letter == ("dependency", "DependencyFailed", "acme")


def test_a_parent_that_is_tried_again_keeps_its_child_waiting(stage: Stage) -> None:
    parent = stage.submit("do_nothing")
    child = stage.submit("do_nothing", depends_on=[Dependency(parent)])
    assert attempt(stage.db, parent, status="pending") == set()
    assert stage.job(child)["unmet_dependencies"] == 1
    assert attempt(stage.db, parent) == {child}


@pytest.mark.parametrize(("on_failure", "becomes"), [("fail", "failed"), ("cancel", "cancelled")])
def test_the_end_of_the_first_ends_a_whole_chain_however_long(stage: Stage, on_failure: str, becomes: str) -> None:
    first, *others = [job.id for job in stage.submit_all(chain(LONG, on_failure=on_failure))]
    attempt(stage.db, first, status="failed")
    assert {stage.status(id_) for id_ in others} == {becomes}


def test_a_child_of_a_failed_and_a_cancelling_parent_is_cancelled(stage: Stage) -> None:
    parents = [stage.submit("do_nothing"), stage.submit("do_nothing")]
    child = stage.submit("do_nothing", depends_on=[Dependency(parents[0]), Dependency(parents[1], on_failure="cancel")])
    attempt(stage.db, *parents, status="failed")
    assert stage.status(child) == "cancelled"


def test_the_last_of_a_diamond_waits_for_both_sides(stage: Stage) -> None:
    top = stage.submit("do_nothing")
    left, right = (stage.submit("do_nothing", depends_on=[Dependency(top)]) for _ in range(2))
    bottom = stage.submit("do_nothing", depends_on=[Dependency(left), Dependency(right)])
    assert attempt(stage.db, top) == {left, right}
    assert attempt(stage.db, left) == set()
    assert attempt(stage.db, right) == {bottom}


def test_a_paused_child_is_released_and_stays_paused(stage: Stage) -> None:
    parent = stage.submit("do_nothing")
    child = stage.submit("do_nothing", depends_on=[Dependency(parent)])
    pause(stage, child)
    assert attempt(stage.db, parent) == set()
    assert (stage.status(child), stage.job(child)["unmet_dependencies"]) == ("paused", 0)


def test_a_paused_child_fails_with_its_parent(stage: Stage) -> None:
    parent = stage.submit("do_nothing")
    child = stage.submit("do_nothing", depends_on=[Dependency(parent)])
    pause(stage, child)
    attempt(stage.db, parent, status="failed")
    assert (stage.status(child), stage.job(child)["paused_by"]) == ("failed", None)


def test_a_child_with_a_time_of_its_own_waits_for_that_too(stage: Stage) -> None:
    parent = stage.submit("do_nothing")
    child = stage.submit("do_nothing", depends_on=[Dependency(parent)], delay=HOUR)
    assert attempt(stage.db, parent) == set()
    job = stage.job(child)
    assert (job["status"], job["unmet_dependencies"], job["send_at"]) == ("pending", 0, job["scheduled_for"])


def test_a_child_that_has_ended_is_not_ended_again_by_its_other_parents(stage: Stage) -> None:
    parents = [stage.submit("do_nothing", group="g"), stage.submit("do_nothing", group="g")]
    waits = [Dependency(parent, on_failure="cancel") for parent in parents]
    child = stage.submit("do_nothing", group="g", depends_on=waits)
    attempt(stage.db, parents[0], status="failed")
    attempt(stage.db, parents[1], status="failed")
    assert stage.status(child) == "cancelled"
    statement = "SELECT total, failed, cancelled FROM signalbox.job_groups"
    assert stage.db.execute(statement).fetchall() == [(3, 2, 1)]


def test_redriven_parent_succeeds_although_its_child_has_failed(stage: Stage) -> None:
    parent = stage.submit("do_nothing")
    child = stage.submit("do_nothing", depends_on=[Dependency(parent)])
    attempt(stage.db, parent, status="failed")
    redriven = "UPDATE signalbox.jobs SET status = 'pending', completed_at = NULL, send_at = now() WHERE id = %s"
    stage.db.execute(redriven, (parent,))
    assert attempt(stage.db, parent) == set()
    assert stage.status(child) == "failed"
    assert count(stage.db, "signalbox.job_dependencies WHERE NOT satisfied") == 0


# ---- submitting, while a parent ends


def test_what_waits_for_parents_that_have_ended_is_queued_at_once(stage: Stage) -> None:
    parent = stage.submit("do_nothing")
    attempt(stage.db, parent)
    [submitted] = stage.submit_all([NewJob(job_type="do_nothing", depends_on=[Dependency(parent)])])
    assert submitted.status == "queued"
    assert claim(stage.db, submitted.id) == {submitted.id}


def test_what_waits_for_a_failed_parent_is_answered_as_failed(stage: Stage) -> None:
    parent = stage.submit("do_nothing")
    attempt(stage.db, parent, status="failed")
    jobs = chain(3)
    jobs[0] = NewJob(job_type="do_nothing", id=jobs[0].id, depends_on=[Dependency(parent)])
    assert [submitted.status for submitted in stage.submit_all(jobs)] == ["failed"] * 3


def test_a_group_does_not_count_a_parent_again_when_a_late_child_comes(stage: Stage) -> None:
    parent = stage.submit("do_nothing", group="g")
    attempt(stage.db, parent)
    stage.submit("do_nothing", group="g", depends_on=[Dependency(parent)])
    assert stage.db.execute("SELECT total, completed FROM signalbox.job_groups").fetchall() == [(2, 1)]


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_a_parent_ends_while_its_child_is_submitted_and_waits_for_nobody(
    stage: Stage, other: Stage, status: str
) -> None:
    parent = stage.submit("do_nothing", group="g")
    claim(other.db, parent)
    with stage.db.transaction():
        child = stage.submit("do_nothing", group="g", depends_on=[Dependency(parent)])
        assert end(other.db, {parent: status}) == set()
    job = stage.job(child)
    if status == "completed":
        assert (job["status"], job["unmet_dependencies"]) == ("pending", 0)
        assert job["send_at"] <= datetime.now(UTC)
    else:
        assert job["status"] == "failed"
    ended = stage.db.execute("SELECT total, completed, failed FROM signalbox.job_groups").fetchall()
    assert ended == [(2, 1, 0) if status == "completed" else (2, 0, 2)]


def test_two_submits_in_one_transaction_do_not_deadlock_with_ending_parents(stage: Stage, other: Stage) -> None:
    first, last = sorted(stage.submit("do_nothing") for _ in range(2))
    claim(other.db, first, last)
    with stage.db.transaction():
        children = [stage.submit("do_nothing", depends_on=[Dependency(parent)]) for parent in (last, first)]
        end(other.db, {first: "completed", last: "completed"})
    assert [stage.job(child)["unmet_dependencies"] for child in children] == [0, 0]


@pytest.mark.parametrize(("status", "becomes"), [("completed", "queued"), ("failed", "failed"), ("pending", "pending")])
def test_a_child_that_is_submitted_while_its_parent_ends_waits_for_that(
    stage: Stage, other: Stage, status: str, becomes: str
) -> None:
    parent = stage.submit("do_nothing")
    claim(stage.db, parent)
    _, [child] = overlapping(
        stage.db,
        lambda: end(stage.db, {parent: status}),
        lambda: other.submit("do_nothing", depends_on=[Dependency(parent)]),
    )
    assert stage.status(child) == becomes


def test_a_submit_into_the_group_of_its_ending_parent_meets_no_deadlock(
    stage: Stage, other: Stage, third: Stage
) -> None:
    parent = stage.submit("do_nothing", group="g")
    child = stage.submit("do_nothing", depends_on=[Dependency(parent)])
    claim(other.db, parent)
    # The worker has the parent, and gets to the group once the child's lock is free; meanwhile the submit comes.
    _, [released, late] = overlapping(
        stage.db,
        lambda: stage.db.execute("SELECT FROM signalbox.jobs WHERE id = %s FOR UPDATE", (child,)),
        lambda: end(other.db, {parent: "completed"}),
        lambda: {third.submit("do_nothing", group="g", depends_on=[Dependency(parent)])},
    )
    assert released == {child}
    assert {stage.status(id_) for id_ in late} == {"queued"}


def test_batch_ending_parents_in_another_order_does_not_deadlock_with_submit(
    stage: Stage, other: Stage, third: Stage
) -> None:
    first, between, last = sorted(stage.submit("do_nothing") for _ in range(3))
    claim(other.db, first, last)
    # The submit has the first parent, and waits for the one between; the worker's batch begins with the last.
    _, [child, released] = overlapping(
        stage.db,
        lambda: attempt(stage.db, between),
        lambda: {third.submit("do_nothing", depends_on=[Dependency(parent) for parent in (first, between, last)])},
        lambda: end(other.db, {last: "completed", first: "completed"}),
    )
    assert child == released


def test_an_older_job_of_the_same_key_is_the_parent_that_is_meant(stage: Stage) -> None:
    older = stage.submit("do_nothing", idempotency_key="k")
    again = NewJob(job_type="do_nothing", id=str(uuid4()), idempotency_key="k")
    twin = NewJob(job_type="do_nothing", id=str(uuid4()), idempotency_key="k")
    waits = [Dependency(again.id or ""), Dependency(twin.id or "")]
    *_, child = stage.submit_all([again, twin, NewJob(job_type="do_nothing", depends_on=waits)])
    assert stage.job(child.id)["unmet_dependencies"] == 1
    assert attempt(stage.db, older) == {child.id}


def test_older_jobs_of_the_same_keys_can_not_close_a_circle(stage: Stage) -> None:
    first, second, third = (str(uuid4()) for _ in range(3))
    jobs = [
        NewJob(job_type="do_nothing", id=first, idempotency_key="k", depends_on=[Dependency(second)]),
        NewJob(job_type="do_nothing", id=second, depends_on=[Dependency(third)]),
        NewJob(job_type="do_nothing", id=third, idempotency_key="k"),
    ]
    with pytest.raises(JobRefused, match="in a circle"):
        stage.submit_all(jobs)
    assert count(stage.db, "signalbox.jobs") == 0


def test_an_id_that_is_none_is_refused(stage: Stage) -> None:
    with pytest.raises(JobRefused, match="not a UUID"):
        stage.submit("do_nothing", id="seven")
