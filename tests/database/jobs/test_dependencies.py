"""What waits for what: nothing begins before its parents, and nothing waits for ever, whatever happens at once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psycopg
import pytest

from signalbox.errors import JobRefused
from signalbox.jobs.dependency import Dependency
from signalbox.submit.new_job import NewJob
from tests.support.ledger_rows import count
from tests.support.work_bench import WorkBench, overlapping

HOUR = timedelta(hours=1)
LONG = 400  # jobs in a chain: more than the server's stack could hold as calls


@pytest.fixture
def bench(db: psycopg.Connection) -> WorkBench:
    return WorkBench(db)


@pytest.fixture
def other(dsn: str) -> Iterator[WorkBench]:
    """Another worker, on a connection of its own."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield WorkBench(connection)


def chain(length: int, **fields: str) -> list[NewJob]:
    """Each job waits for the one before."""
    ids = [str(uuid4()) for _ in range(length)]
    waits = [[], *([Dependency(id_, **fields)] for id_ in ids)]  # type: ignore[arg-type]
    return [NewJob(job_type="do_nothing", id=id_, depends_on=depends) for id_, depends in zip(ids, waits, strict=False)]


third = other


# ---- parents that end later


def test_a_job_goes_when_the_last_of_its_parents_has_ended(bench: WorkBench) -> None:
    first, second = bench.submit(), bench.submit()
    child = bench.submit(depends_on=[Dependency(first), Dependency(second)])
    assert bench.run(first) == set()
    assert bench.begin(child) == set()
    assert bench.run(second) == {child}
    assert bench.begin(child) == {child}


def test_both_parents_in_one_batch_release_their_child_once(bench: WorkBench) -> None:
    parents = [bench.submit(), bench.submit()]
    child = bench.submit(depends_on=[Dependency(parent) for parent in parents])
    assert bench.run(*parents) == {child}
    assert bench.job(child)["unmet_dependencies"] == 0


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
    bench: WorkBench, kind: str, on_failure: str, end: str, becomes: str, *, ended_before: bool
) -> None:
    parent = bench.submit()
    wait = Dependency(parent, kind, on_failure)  # type: ignore[arg-type]
    if ended_before:
        bench.run(parent, status=end)
        child = bench.submit(depends_on=[wait])
        becomes = "queued" if becomes == "pending" else becomes
    else:
        child = bench.submit(depends_on=[wait])
        assert bench.run(parent, status=end) == ({child} if becomes == "pending" else set())
    assert bench.status(child) == becomes
    assert bench.begin(child) == ({child} if becomes in ("pending", "queued") else set())


def test_a_job_that_fails_with_its_parent_has_a_dead_letter_and_no_attempt(bench: WorkBench) -> None:
    parent = bench.submit()
    child = bench.submit(depends_on=[Dependency(parent)], tenant="acme")
    bench.run(parent, status="failed")
    job = bench.job(child)
    assert (job["attempts"], job["executions"], job["error_details"]["type"]) == (0, 0, "DependencyFailed")
    letter = bench.db.execute(
        "SELECT failure_reason, error_type, tenant FROM signalbox.dead_letter_jobs WHERE original_job_id = %s", (child,)
    ).fetchone()
    assert letter == ("dependency", "DependencyFailed", "acme")


def test_a_parent_that_is_tried_again_keeps_its_child_waiting(bench: WorkBench) -> None:
    parent = bench.submit()
    child = bench.submit(depends_on=[Dependency(parent)])
    assert bench.run(parent, status="pending") == set()
    assert bench.job(child)["unmet_dependencies"] == 1
    assert bench.run(parent) == {child}


@pytest.mark.parametrize(("on_failure", "becomes"), [("fail", "failed"), ("cancel", "cancelled")])
def test_the_end_of_the_first_ends_a_whole_chain_however_long(bench: WorkBench, on_failure: str, becomes: str) -> None:
    first, *others = [job.id for job in bench.submit_all(chain(LONG, on_failure=on_failure))]
    bench.run(first, status="failed")
    assert {bench.status(id_) for id_ in others} == {becomes}


def test_a_child_of_a_failed_and_a_cancelling_parent_is_cancelled(bench: WorkBench) -> None:
    parents = [bench.submit(), bench.submit()]
    child = bench.submit(depends_on=[Dependency(parents[0]), Dependency(parents[1], on_failure="cancel")])
    bench.run(*parents, status="failed")
    assert bench.status(child) == "cancelled"


def test_the_last_of_a_diamond_waits_for_both_sides(bench: WorkBench) -> None:
    top = bench.submit()
    left, right = (bench.submit(depends_on=[Dependency(top)]) for _ in range(2))
    bottom = bench.submit(depends_on=[Dependency(left), Dependency(right)])
    assert bench.run(top) == {left, right}
    assert bench.run(left) == set()
    assert bench.run(right) == {bottom}


def test_a_paused_child_is_released_and_stays_paused(bench: WorkBench) -> None:
    parent = bench.submit()
    child = bench.submit(depends_on=[Dependency(parent)])
    bench.pause(child)
    assert bench.run(parent) == set()
    assert (bench.status(child), bench.job(child)["unmet_dependencies"]) == ("paused", 0)


def test_a_paused_child_fails_with_its_parent(bench: WorkBench) -> None:
    parent = bench.submit()
    child = bench.submit(depends_on=[Dependency(parent)])
    bench.pause(child)
    bench.run(parent, status="failed")
    assert bench.status(child) == "failed"


def test_a_child_with_a_time_of_its_own_waits_for_that_too(bench: WorkBench) -> None:
    parent = bench.submit()
    child = bench.submit(depends_on=[Dependency(parent)], delay=HOUR)
    assert bench.run(parent) == set()
    job = bench.job(child)
    assert (job["status"], job["unmet_dependencies"], job["send_at"]) == ("pending", 0, job["scheduled_for"])


def test_a_child_that_has_ended_is_not_ended_again_by_its_other_parents(bench: WorkBench) -> None:
    parents = [bench.submit(group="g"), bench.submit(group="g")]
    waits = [Dependency(parent, on_failure="cancel") for parent in parents]
    child = bench.submit(group="g", depends_on=waits)
    bench.run(parents[0], status="failed")
    bench.run(parents[1], status="failed")
    assert bench.status(child) == "cancelled"
    statement = "SELECT total, failed, cancelled FROM signalbox.job_groups"
    assert bench.db.execute(statement).fetchall() == [(3, 2, 1)]


def test_a_parent_that_succeeds_after_a_redrive_is_not_in_its_failed_childs_way(bench: WorkBench) -> None:
    parent = bench.submit()
    child = bench.submit(depends_on=[Dependency(parent)])
    bench.run(parent, status="failed")
    redriven = "UPDATE signalbox.jobs SET status = 'pending', completed_at = NULL, send_at = now() WHERE id = %s"
    bench.db.execute(redriven, (parent,))
    assert bench.run(parent) == set()
    assert bench.status(child) == "failed"
    assert count(bench.db, "signalbox.job_dependencies WHERE NOT satisfied") == 0


# ---- submitting, while a parent ends


def test_what_waits_for_parents_that_have_ended_is_queued_at_once(bench: WorkBench) -> None:
    parent = bench.submit()
    bench.run(parent)
    [submitted] = bench.submit_all([NewJob(job_type="do_nothing", depends_on=[Dependency(parent)])])
    assert submitted.status == "queued"
    assert bench.begin(submitted.id) == {submitted.id}


def test_what_waits_for_a_failed_parent_is_answered_as_failed(bench: WorkBench) -> None:
    parent = bench.submit()
    bench.run(parent, status="failed")
    jobs = chain(3)
    jobs[0] = NewJob(job_type="do_nothing", id=jobs[0].id, depends_on=[Dependency(parent)])
    assert [submitted.status for submitted in bench.submit_all(jobs)] == ["failed"] * 3


def test_a_group_does_not_count_a_parent_again_when_a_late_child_comes(bench: WorkBench) -> None:
    parent = bench.submit(group="g")
    bench.run(parent)
    bench.submit(group="g", depends_on=[Dependency(parent)])
    assert bench.db.execute("SELECT total, completed FROM signalbox.job_groups").fetchall() == [(2, 1)]


@pytest.mark.parametrize("end", ["completed", "failed"])
def test_a_parent_ends_while_its_child_is_submitted_and_waits_for_nobody(
    bench: WorkBench, other: WorkBench, end: str
) -> None:
    parent = bench.submit(group="g")
    other.begin(parent)
    with bench.db.transaction():
        child = bench.submit(group="g", depends_on=[Dependency(parent)])
        assert other.end({parent: end}) == set()
    job = bench.job(child)
    if end == "completed":
        assert (job["status"], job["unmet_dependencies"]) == ("pending", 0)
        assert job["send_at"] <= datetime.now(UTC)
    else:
        assert job["status"] == "failed"
    ended = bench.db.execute("SELECT total, completed, failed FROM signalbox.job_groups").fetchall()
    assert ended == [(2, 1, 0) if end == "completed" else (2, 0, 2)]


def test_two_submits_of_one_transaction_meet_no_deadlock_with_the_ends_of_their_parents(
    bench: WorkBench, other: WorkBench
) -> None:
    first, last = sorted(bench.submit() for _ in range(2))
    other.begin(first, last)
    with bench.db.transaction():
        children = [bench.submit(depends_on=[Dependency(parent)]) for parent in (last, first)]
        other.end({first: "completed", last: "completed"})
    assert [bench.job(child)["unmet_dependencies"] for child in children] == [0, 0]


@pytest.mark.parametrize(("end", "becomes"), [("completed", "queued"), ("failed", "failed"), ("pending", "pending")])
def test_a_child_that_is_submitted_while_its_parent_ends_waits_for_that(
    bench: WorkBench, other: WorkBench, end: str, becomes: str
) -> None:
    parent = bench.submit()
    bench.begin(parent)
    _, [child] = overlapping(
        bench, lambda: bench.end({parent: end}), lambda: other.submit(depends_on=[Dependency(parent)])
    )
    assert bench.status(child) == becomes


def test_a_submit_into_the_group_of_its_ending_parent_meets_no_deadlock(
    bench: WorkBench, other: WorkBench, third: WorkBench
) -> None:
    parent = bench.submit(group="g")
    child = bench.submit(depends_on=[Dependency(parent)])
    other.begin(parent)
    # The worker has the parent, and gets to the group once the child's lock is free; meanwhile the submit comes.
    _, [released, late] = overlapping(
        bench,
        lambda: bench.db.execute("SELECT FROM signalbox.jobs WHERE id = %s FOR UPDATE", (child,)),
        lambda: other.end({parent: "completed"}),
        lambda: {third.submit(group="g", depends_on=[Dependency(parent)])},
    )
    assert released == {child}
    assert {bench.status(id_) for id_ in late} == {"queued"}


def test_a_batch_that_ends_the_parents_of_a_submit_in_another_order_meets_no_deadlock(
    bench: WorkBench, other: WorkBench, third: WorkBench
) -> None:
    first, between, last = sorted(bench.submit() for _ in range(3))
    other.begin(first, last)
    # The submit has the first parent, and waits for the one between; the worker's batch begins with the last.
    _, [child, released] = overlapping(
        bench,
        lambda: bench.run(between),
        lambda: {third.submit(depends_on=[Dependency(parent) for parent in (first, between, last)])},
        lambda: other.end({last: "completed", first: "completed"}),
    )
    assert child == released


def test_an_older_job_of_the_same_key_is_the_parent_that_is_meant(bench: WorkBench) -> None:
    older = bench.submit(idempotency_key="k")
    again = NewJob(job_type="do_nothing", id=str(uuid4()), idempotency_key="k")
    twin = NewJob(job_type="do_nothing", id=str(uuid4()), idempotency_key="k")
    waits = [Dependency(again.id or ""), Dependency(twin.id or "")]
    *_, child = bench.submit_all([again, twin, NewJob(job_type="do_nothing", depends_on=waits)])
    assert bench.job(child.id)["unmet_dependencies"] == 1
    assert bench.run(older) == {child.id}


def test_older_jobs_of_the_same_keys_can_not_close_a_circle(bench: WorkBench) -> None:
    first, second, third = (str(uuid4()) for _ in range(3))
    jobs = [
        NewJob(job_type="do_nothing", id=first, idempotency_key="k", depends_on=[Dependency(second)]),
        NewJob(job_type="do_nothing", id=second, depends_on=[Dependency(third)]),
        NewJob(job_type="do_nothing", id=third, idempotency_key="k"),
    ]
    with pytest.raises(JobRefused, match="in a circle"):
        bench.submit_all(jobs)
    assert count(bench.db, "signalbox.jobs") == 0


def test_an_id_that_is_none_is_refused(bench: WorkBench) -> None:
    with pytest.raises(JobRefused, match="no UUID"):
        bench.submit(id="seven")
