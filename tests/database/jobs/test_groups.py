"""Groups: counted as their jobs end, sealed once, and followed by one completion job that knows the counts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from signalbox.errors import GroupUnknown, JobRefused
from signalbox.jobs.dependency import Dependency
from signalbox.submit.groups import Group, seal_group, show_group
from signalbox.submit.new_job import NewJob
from tests.support.ledger_rows import count
from tests.support.work_bench import CATALOGUE, WorkBench, overlapping

DONE = NewJob(job_type="note_job", idempotency_key="done")


@pytest.fixture
def bench(db: psycopg.Connection) -> WorkBench:
    return WorkBench(db)


@pytest.fixture
def other(dsn: str) -> Iterator[WorkBench]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield WorkBench(connection)


def seal(bench: WorkBench, completion: NewJob | None = DONE) -> tuple[Group, list[str]]:
    return seal_group(bench.db, CATALOGUE, "g", datetime.now(UTC), completion)


def counts(bench: WorkBench) -> tuple[int, int, int, int]:
    group = show_group(bench.db, "g")
    return (group.total, group.completed, group.failed, group.cancelled)


def test_a_group_begins_with_its_first_job_and_counts_as_they_end(bench: WorkBench) -> None:
    jobs = [submitted.id for submitted in bench.submit_all([NewJob(job_type="do_nothing", group="g")] * 4)]
    assert counts(bench) == (4, 0, 0, 0)
    bench.begin(*jobs)
    bench.end({jobs[0]: "completed", jobs[1]: "failed", jobs[2]: "cancelled", jobs[3]: "pending"})
    assert counts(bench) == (4, 1, 1, 1)
    group = show_group(bench.db, "g")
    assert (group.left, group.ended, group.percent, group.sealed) == (1, 3, 75, False)


def test_a_job_that_was_submitted_before_is_counted_once(bench: WorkBench) -> None:
    for _ in range(2):
        bench.submit(group="g", idempotency_key="k")
    assert counts(bench) == (1, 0, 0, 0)


def test_the_completion_job_waits_for_the_last_and_is_told_the_counts(bench: WorkBench) -> None:
    jobs = [bench.submit(group="g") for _ in range(3)]
    bench.run(jobs[0])
    group, due = seal(bench)
    assert group.completion_job_id is not None
    completion = group.completion_job_id
    assert (due, bench.status(completion), bench.begin(completion)) == ([], "pending", set())
    assert bench.run(jobs[1], status="failed") == set()
    assert bench.run(jobs[2]) == {completion}
    assert bench.begin(completion) == {completion}
    assert bench.at_work[completion].config == {
        "group": {"id": "g", "total": 3, "completed": 2, "failed": 1, "cancelled": 0}
    }
    assert show_group(bench.db, "g").finished_at is not None


def test_a_completion_job_waits_for_its_own_parents_and_its_own_time_too(bench: WorkBench) -> None:
    job, parent = bench.submit(group="g"), bench.submit()
    group, _ = seal(bench, NewJob(job_type="do_nothing", depends_on=[Dependency(parent)], delay=timedelta(hours=1)))
    completion = bench.job(group.completion_job_id or "")
    assert (completion["unmet_dependencies"], completion["send_at"]) == (2, None)
    assert bench.run(job) == set()
    assert bench.run(parent) == set()
    completion = bench.job(group.completion_job_id or "")
    assert (completion["unmet_dependencies"], completion["send_at"]) == (0, completion["scheduled_for"])


def test_an_empty_group_is_finished_when_it_is_sealed(bench: WorkBench) -> None:
    group, due = seal(bench)
    assert group.finished_at is not None
    assert (group.total, group.percent, due) == (0, 100, [group.completion_job_id])
    assert bench.begin(*due) == set(due)


def test_a_group_whose_jobs_have_all_ended_is_finished_when_it_is_sealed(bench: WorkBench) -> None:
    bench.run(bench.submit(group="g"))
    group, due = seal(bench)
    assert (group.finished_at is not None, due) == (True, [group.completion_job_id])


def test_a_group_can_be_sealed_without_a_completion_job(bench: WorkBench) -> None:
    job = bench.submit(group="g")
    assert seal(bench, None) == (show_group(bench.db, "g"), [])
    bench.run(job)
    assert show_group(bench.db, "g").finished_at is not None


def test_a_sealed_group_takes_no_more_and_nothing_is_stored(bench: WorkBench) -> None:
    seal(bench, None)
    with pytest.raises(JobRefused, match="group 'g' is sealed"):
        bench.submit_all([NewJob(job_type="do_nothing"), NewJob(job_type="do_nothing", group="g")])
    assert count(bench.db, "signalbox.jobs") == 0


def test_sealing_again_changes_nothing(bench: WorkBench) -> None:
    bench.submit(group="g")
    first, _ = seal(bench)
    assert seal(bench) == (first, [])
    assert seal(bench, None) == (first, [])
    assert bench.job(first.completion_job_id or "")["unmet_dependencies"] == 1


def test_sealing_again_with_another_completion_job_is_refused(bench: WorkBench) -> None:
    seal(bench)
    with pytest.raises(JobRefused, match="is sealed, and not with this completion job"):
        seal(bench, NewJob(job_type="do_nothing"))
    assert count(bench.db, "signalbox.jobs") == 1


def test_a_completion_job_that_is_another_job_or_of_the_group_itself_is_refused(bench: WorkBench) -> None:
    bench.submit("note_job", idempotency_key="done")
    with pytest.raises(JobRefused, match="has the idempotency key of an older job"):
        seal(bench)
    with pytest.raises(JobRefused, match="would wait for itself"):
        seal(bench, NewJob(job_type="do_nothing", group="g"))
    assert count(bench.db, "signalbox.job_groups") == 0


def test_a_group_that_nobody_joined_is_not_known(bench: WorkBench) -> None:
    with pytest.raises(GroupUnknown, match="there is no group 'g'"):
        show_group(bench.db, "g")


def test_what_fails_with_its_parents_counts_in_its_own_group(bench: WorkBench) -> None:
    parent = bench.submit()
    child = bench.submit(group="g", depends_on=[Dependency(parent)])
    grandchild = bench.submit(group="g", depends_on=[Dependency(child, on_failure="cancel")])
    _, due = seal(bench)
    assert due == []
    completion = show_group(bench.db, "g").completion_job_id
    assert bench.run(parent, status="failed") == {completion}
    assert counts(bench) == (2, 0, 1, 1)
    assert bench.status(grandchild) == "cancelled"


def test_an_end_before_the_seal_commits_waits_and_finishes_the_group(bench: WorkBench, other: WorkBench) -> None:
    job = bench.submit(group="g")
    other.begin(job)
    (group, due), [released] = overlapping(bench, lambda: seal(bench), lambda: other.end({job: "completed"}))
    assert (due, released) == ([], {group.completion_job_id})


def test_a_seal_before_the_last_end_commits_waits_and_finishes_the_group(bench: WorkBench, other: WorkBench) -> None:
    job = bench.submit(group="g")
    bench.begin(job)
    _, [(group, due)] = overlapping(bench, lambda: bench.end({job: "completed"}), lambda: seal(other))
    assert due == [group.completion_job_id]


def test_a_submit_that_meets_a_seal_is_refused_or_counted(bench: WorkBench, other: WorkBench) -> None:
    def join() -> str:
        with pytest.raises(JobRefused, match="is sealed"):
            other.submit(group="g")
        return "refused"

    (group, _), [answer] = overlapping(bench, lambda: seal(bench), join)
    assert (group.total, answer) == (0, "refused")
