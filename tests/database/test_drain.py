"""A drain ends all due jobs with the real worker, and names those that go round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from signalbox.jobs.dependency import Dependency
from signalbox.packs.job_type import JobType
from signalbox.submit.insert import submit
from signalbox.submit.new_job import NewJob
from signalbox.testing.drain import EVER, DrainEndless, EndedJob
from signalbox.testing.stage import NOON, Stage
from tests.support.jobs import TEST_JOB_TYPES, obeying
from tests.support.jobs.act import ACTS


@pytest.fixture
def stage(stage: Stage) -> Stage:
    return stage.with_job_types(*TEST_JOB_TYPES, JobType("act", "acts", "tests.support.jobs.act"))


@pytest.fixture
def immediate(stage: Stage) -> Iterator[None]:
    with stage.immediate():
        yield


@pytest.fixture
def parent(stage: Stage) -> NewJob:
    """Submit another job."""

    def submit_child(context: Any) -> None:
        context.submit([NewJob(job_type="do_nothing")])

    ACTS["submit a child"] = submit_child
    return NewJob(job_type="act", payload={"name": "submit a child"})


def ends(ended: list[EndedJob]) -> dict[str, str]:
    return {job.id: job.status for job in ended}


def test_nothing_is_due_where_nothing_was_submitted(stage: Stage) -> None:
    assert stage.drain() == []


def test_drain_brings_what_jobs_submit_and_release_to_its_end(stage: Stage, parent: NewJob) -> None:
    first = stage.submit(parent)
    follower = stage.submit("do_nothing", depends_on=[Dependency(first)])
    ended = stage.drain()
    assert ends(ended).items() >= {(first, "completed"), (follower, "completed")}
    assert [(job.job_type, job.status) for job in ended if job.id not in (first, follower)] == [
        ("do_nothing", "completed")
    ]


def test_drain_answers_failures_with_their_errors_and_only_once(stage: Stage) -> None:
    failing = stage.submit(obeying("fail_for_good"))
    waiting = stage.submit("do_nothing", depends_on=[Dependency(failing)])
    first, second = stage.drain()
    assert ends([first, second]) == {failing: "failed", waiting: "failed"}
    assert {job.error["type"] for job in (first, second) if job.error} == {"Permanent", "DependencyFailed"}
    assert stage.drain() == []


def test_retry_is_left_until_its_time_or_until_the_instant_given(stage: Stage) -> None:
    job_id = stage.submit(obeying("fail", 3600))
    assert stage.drain(until=NOON) == []
    assert stage.status(job_id) == "pending"
    assert ends(stage.drain(until=EVER)) == {job_id: "failed"}
    assert stage.dead_letter(job_id)["total_attempts"] == 3


def test_paused_and_held_jobs_stay_as_they_are(stage: Stage) -> None:
    stage.operate("pause", kind="tenant", key="acme", by="jo")
    stage.operate("set_cap", kind="key", key="mail", max_running=0, by="jo")
    ids = stage.submit("do_nothing", tenant="acme"), stage.submit("do_nothing", cap_key="mail")
    assert stage.drain(until=EVER) == []
    assert stage.statuses(*ids) == ["paused", "pending"]


def test_jobs_that_go_round_are_named(stage: Stage) -> None:
    job_id = stage.submit(obeying("snooze", 30))
    with pytest.raises(DrainEndless, match=rf"still due after 5 attempts: obey {job_id}, pending after 6 attempts"):
        stage.drain(until=EVER, limit=5)


@pytest.mark.usefixtures("immediate")
def test_job_runs_when_its_transaction_has_committed(stage: Stage) -> None:
    with stage.db.transaction():
        job_id = stage.submit("do_nothing")
        assert stage.status(job_id) == "queued"
    assert stage.status(job_id) == "completed"


@pytest.mark.usefixtures("immediate")
def test_jobs_of_a_transaction_that_rolls_back_never_run(stage: Stage) -> None:
    with stage.db.transaction(force_rollback=True):
        stage.submit("do_nothing")
    assert stage.db.execute("SELECT count(*) FROM signalbox.job_executions").fetchone() == (0,)


@pytest.mark.usefixtures("immediate")
def test_what_a_job_submits_runs_too(stage: Stage, parent: NewJob, dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        [job] = submit(connection, stage.job_types, [parent], NOON)
        connection.commit()
        assert stage.status(job.id) == "completed"
    assert stage.db.execute("SELECT DISTINCT status, count(*) FROM signalbox.jobs GROUP BY 1").fetchall() == [
        ("completed", 2)
    ]


def test_open_transaction_runs_nothing(stage: Stage) -> None:
    job_id = stage.submit("do_nothing")
    with stage.immediate():
        with stage.db.transaction():
            stage.db.execute("SELECT 1")
            assert stage.status(job_id) == "queued"
        assert stage.status(job_id) == "completed"


def test_jobs_wait_again_once_the_mode_is_over(stage: Stage) -> None:
    with stage.immediate():
        pass
    assert stage.status(stage.submit("do_nothing")) == "queued"


def test_committing_elsewhere_runs_nothing(stage: Stage, server: str) -> None:
    job_id = stage.submit("do_nothing")
    with stage.immediate(), psycopg.connect(server) as elsewhere:
        elsewhere.execute("SELECT 1")
        elsewhere.commit()
        other_database = elsewhere.info.dbname
    assert other_database != stage.db.info.dbname
    assert stage.status(job_id) == "queued"
