"""Groups count their jobs' ends, are sealed once, and lead to one completion job with the counts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from signalbox.errors import GroupUnknown, JobRefused
from signalbox.jobs.dependency import Dependency
from signalbox.submit.groups import Group, seal_group, show_group
from signalbox.submit.new_job import NewJob
from signalbox.testing.rows import count
from signalbox.testing.stage import Stage
from tests.support.attempts import attempt, claim, end
from tests.support.lock_waits import overlapping

DONE = NewJob(job_type="note_job", idempotency_key="done")


def seal(stage: Stage, completion: NewJob | None = DONE) -> tuple[Group, list[str]]:
    return seal_group(stage.db, stage.job_types, "g", datetime.now(UTC), completion)


def counts(stage: Stage) -> tuple[int, int, int, int]:
    group = show_group(stage.db, "g")
    return (group.total, group.completed, group.failed, group.cancelled)


def test_a_group_begins_with_its_first_job_and_counts_as_they_end(stage: Stage) -> None:
    jobs = [submitted.id for submitted in stage.submit_all([NewJob(job_type="do_nothing", group="g")] * 4)]
    assert counts(stage) == (4, 0, 0, 0)
    claim(stage.db, *jobs)
    end(stage.db, {jobs[0]: "completed", jobs[1]: "failed", jobs[2]: "cancelled", jobs[3]: "pending"})
    assert counts(stage) == (4, 1, 1, 1)
    group = show_group(stage.db, "g")
    assert (group.left, group.ended, group.percent, group.sealed) == (1, 3, 75, False)


def test_a_job_that_was_submitted_before_is_counted_once(stage: Stage) -> None:
    for _ in range(2):
        stage.submit("do_nothing", group="g", idempotency_key="k")
    assert counts(stage) == (1, 0, 0, 0)


def test_completion_job_waits_for_the_last_and_receives_the_counts(stage: Stage) -> None:
    jobs = [stage.submit("do_nothing", group="g") for _ in range(3)]
    attempt(stage.db, jobs[0])
    group, due = seal(stage)
    assert group.completion_job_id is not None
    completion = group.completion_job_id
    assert (due, stage.status(completion), claim(stage.db, completion)) == ([], "pending", set())
    assert attempt(stage.db, jobs[1], status="failed") == set()
    assert attempt(stage.db, jobs[2]) == {completion}
    assert claim(stage.db, completion) == {completion}
    assert stage.job(completion)["config"] == {
        "group": {"id": "g", "total": 3, "completed": 2, "failed": 1, "cancelled": 0}
    }
    assert show_group(stage.db, "g").finished_at is not None


def test_a_completion_job_waits_for_its_own_parents_and_its_own_time_too(stage: Stage) -> None:
    job, parent = stage.submit("do_nothing", group="g"), stage.submit("do_nothing")
    group, _ = seal(stage, NewJob(job_type="do_nothing", depends_on=[Dependency(parent)], delay=timedelta(hours=1)))
    completion = stage.job(group.completion_job_id or "")
    assert (completion["unmet_dependencies"], completion["send_at"]) == (2, None)
    assert attempt(stage.db, job) == set()
    assert attempt(stage.db, parent) == set()
    completion = stage.job(group.completion_job_id or "")
    assert (completion["unmet_dependencies"], completion["send_at"]) == (0, completion["scheduled_for"])


def test_an_empty_group_is_finished_when_it_is_sealed(stage: Stage) -> None:
    group, due = seal(stage)
    assert group.finished_at is not None
    assert (group.total, group.percent, due) == (0, 100, [group.completion_job_id])
    assert claim(stage.db, *due) == set(due)


def test_a_group_whose_jobs_have_all_ended_is_finished_when_it_is_sealed(stage: Stage) -> None:
    attempt(stage.db, stage.submit("do_nothing", group="g"))
    group, due = seal(stage)
    assert (group.finished_at is not None, due) == (True, [group.completion_job_id])


def test_a_group_can_be_sealed_without_a_completion_job(stage: Stage) -> None:
    job = stage.submit("do_nothing", group="g")
    assert seal(stage, None) == (show_group(stage.db, "g"), [])
    attempt(stage.db, job)
    assert show_group(stage.db, "g").finished_at is not None


def test_a_sealed_group_takes_no_more_and_nothing_is_stored(stage: Stage) -> None:
    seal(stage, None)
    with pytest.raises(JobRefused, match="group 'g' is sealed"):
        stage.submit_all([NewJob(job_type="do_nothing"), NewJob(job_type="do_nothing", group="g")])
    assert count(stage.db, "signalbox.jobs") == 0


def test_sealing_again_changes_nothing(stage: Stage) -> None:
    stage.submit("do_nothing", group="g")
    first, _ = seal(stage)
    assert seal(stage) == (first, [])
    assert seal(stage, None) == (first, [])
    assert stage.job(first.completion_job_id or "")["unmet_dependencies"] == 1


def test_sealing_again_with_another_completion_job_is_refused(stage: Stage) -> None:
    seal(stage)
    with pytest.raises(JobRefused, match="is sealed with another completion job"):
        seal(stage, NewJob(job_type="do_nothing"))
    assert count(stage.db, "signalbox.jobs") == 1


def test_completion_job_must_be_new_and_outside_its_group(stage: Stage) -> None:
    stage.submit("note_job", idempotency_key="done")
    with pytest.raises(JobRefused, match="has the idempotency key of an older job"):
        seal(stage)
    with pytest.raises(JobRefused, match="would wait for itself"):
        seal(stage, NewJob(job_type="do_nothing", group="g"))
    assert count(stage.db, "signalbox.job_groups") == 0


def test_a_group_that_nobody_joined_is_not_known(stage: Stage) -> None:
    with pytest.raises(GroupUnknown, match="there is no group 'g'"):
        show_group(stage.db, "g")


def test_what_fails_with_its_parents_counts_in_its_own_group(stage: Stage) -> None:
    parent = stage.submit("do_nothing")
    child = stage.submit("do_nothing", group="g", depends_on=[Dependency(parent)])
    grandchild = stage.submit("do_nothing", group="g", depends_on=[Dependency(child, on_failure="cancel")])
    _, due = seal(stage)
    assert due == []
    completion = show_group(stage.db, "g").completion_job_id
    assert attempt(stage.db, parent, status="failed") == {completion}
    assert counts(stage) == (2, 0, 1, 1)
    assert stage.status(grandchild) == "cancelled"


def test_an_end_before_the_seal_commits_waits_and_finishes_the_group(stage: Stage, other: Stage) -> None:
    job = stage.submit("do_nothing", group="g")
    claim(other.db, job)
    (group, due), [released] = overlapping(stage.db, lambda: seal(stage), lambda: end(other.db, {job: "completed"}))
    assert (due, released) == ([], {group.completion_job_id})


def test_a_seal_before_the_last_end_commits_waits_and_finishes_the_group(stage: Stage, other: Stage) -> None:
    job = stage.submit("do_nothing", group="g")
    claim(stage.db, job)
    _, [(group, due)] = overlapping(stage.db, lambda: end(stage.db, {job: "completed"}), lambda: seal(other))
    assert due == [group.completion_job_id]


def test_a_submit_that_meets_a_seal_is_refused_or_counted(stage: Stage, other: Stage) -> None:
    def join() -> str:
        with pytest.raises(JobRefused, match="is sealed"):
            other.submit("do_nothing", group="g")
        return "refused"

    (group, _), [answer] = overlapping(stage.db, lambda: seal(stage), join)
    assert (group.total, answer) == (0, "refused")
