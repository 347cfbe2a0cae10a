"""A job that ends alone is written as one that ends among many, and a retry as its way wants it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from signalbox.jobs.dependency import Dependency
from signalbox.jobs.end_record import Cost, EndRecord
from signalbox.jobs.job import ClaimedJob
from signalbox.jobs.retry_routing import LOST_AFTER, SQS_MAX_DELAY
from signalbox.jobs.verdict import COMPLETED, Verdict
from signalbox.postgres.connection import transaction_to_end
from signalbox.testing.stage import Stage
from signalbox.worker.lease import EndedJob, LeaseClaim, LeaseLost, complete, finish
from tests.support.jobs import obeying

COST = Cost(began_ms=1.25, ended_ms=4.75, cpu_ms=2.5, memory_mb=64)
# What can't be alike in two jobs: who they are, and the moment itself.
OWN = {
    "id", "job_id", "scheduled_for", "created_at", "queued_at", "started_at", "completed_at", "updated_at",
    "first_started_at", "cpu_usage_percent",
}  # fmt: skip


def claim(db: psycopg.Connection, *ids: str) -> list[ClaimedJob]:
    return LeaseClaim(str(uuid.uuid4()), "worker").begin(db, ids)


def alone(db: psycopg.Connection, job: ClaimedJob, verdict: Verdict) -> list[EndedJob]:
    with transaction_to_end(db, seconds=60):
        try:
            return complete(db, job, verdict, COST)
        except LeaseLost:
            return []


def among_many(db: psycopg.Connection, job: ClaimedJob, verdict: Verdict) -> list[EndedJob]:
    return finish(db, [EndRecord(job.id, job.token, verdict, COST)])


def written(stage: Stage, job_id: str) -> list[dict[str, Any]]:
    job = stage.job(job_id)
    assert job["updated_at"] >= job["completed_at"]
    assert job["cpu_usage_percent"] == pytest.approx(100 * 2.5 / 3.5, abs=0.1)
    attempt = stage.attempts(job_id)[-1]
    assert all(job[name] == attempt[name] for name in ("started_at", "completed_at"))
    return [{name: value for name, value in row.items() if name not in OWN} for row in (job, attempt)]


def test_transaction_of_a_worker_that_falls_silent_is_undone(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as db:
        whole = transaction_to_end(db, seconds=0.05)
        whole.__enter__()
        time.sleep(0.5)
        with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
            db.execute("SELECT")


@pytest.mark.parametrize(
    "verdict",
    [COMPLETED, Verdict("completed", "completed", result={"rows": [1, None]}, output_files=("s3://bucket/file",))],
    ids=["nothing said", "a result"],
)
def test_all_that_is_written_of_a_job_is_alike(stage: Stage, verdict: Verdict) -> None:
    """Both have failed before, and have got half way since."""
    ids = [stage.submit(obeying("fail")), stage.submit(obeying("fail"))]
    stage.work(*ids)
    half = "progress_percent = 50, cursor = '7', progress_message = 'half'"
    stage.db.execute(f"UPDATE signalbox.jobs SET status = 'queued', {half}".encode())
    for job, end in zip(claim(stage.db, *ids), (alone, among_many), strict=True):
        assert end(stage.db, job, verdict) == [(job.id, "completed", False)]
    one, other = (written(stage, id_) for id_ in ids)
    assert one == other


@pytest.mark.parametrize("end", [alone, among_many])
def test_who_waits_for_it_may_go_and_its_group_counts_it(stage: Stage, end: Any) -> None:
    first = stage.submit("do_nothing", group="night")
    waiting = stage.submit("do_nothing", depends_on=[Dependency(first)])
    [job] = claim(stage.db, first)
    told: Sequence[EndedJob] = end(stage.db, job, COMPLETED)
    assert [(id_, follows) for id_, _, follows in told] == [(first, False), (waiting, True)]
    assert stage.job(waiting)["unmet_dependencies"] == 0
    counted = stage.db.execute("SELECT completed, total FROM signalbox.job_groups").fetchone()
    assert counted == (1, 1)


@pytest.mark.parametrize("end", [alone, among_many])
def test_worker_that_lost_the_lease_changes_nothing(stage: Stage, end: Any) -> None:
    job_id = stage.submit("do_nothing")
    [job] = claim(stage.db, job_id)
    stage.db.execute("UPDATE signalbox.jobs SET lease_token = gen_random_uuid()")
    assert end(stage.db, job, COMPLETED) == []
    assert stage.job(job_id)["status"] == "running"
    assert stage.attempts(job_id) == []


def test_jobs_of_a_claim_whose_answer_was_lost_are_run(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [stage.submit(obeying("complete", max_attempts=1)) for _ in range(3)]
    begin, losses = LeaseClaim.begin, iter([True])

    def lose_the_first_answer(*asked: Any, **options: Any) -> list[ClaimedJob]:
        jobs = begin(*asked, **options)
        if next(losses, False):
            stage.app.resources.database.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return jobs

    monkeypatch.setattr(LeaseClaim, "begin", lose_the_first_answer)
    assert stage.work(*ids) == {"batchItemFailures": []}
    assert [stage.job(id_)["status"] for id_ in ids] == ["completed"] * 3
    assert [len(stage.attempts(id_)) for id_ in ids] == [1, 1, 1]


@pytest.mark.parametrize(("delay", "more"), [(SQS_MAX_DELAY, LOST_AFTER), (2 * SQS_MAX_DELAY, timedelta(0))])
def test_a_retry_is_looked_for_when_its_message_should_have_come(
    stage: Stage, delay: timedelta, more: timedelta
) -> None:
    [job] = claim(stage.db, stage.submit("do_nothing"))
    finish(
        stage.db, [EndRecord(job.id, job.token, Verdict("pending", "failed", delay=delay, error={"type": "Trouble"}))]
    )
    row = stage.job(job.id)
    assert row["send_at"] - row["scheduled_for"] == more
    assert row["scheduled_for"] - row["updated_at"] == delay
