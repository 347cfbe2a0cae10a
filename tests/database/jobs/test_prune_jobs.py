"""Jobs that ended long ago go with all their rows; those that may still be needed stay."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from botocore.exceptions import ClientError

from signalbox.submit.insert import submit
from signalbox.submit.new_job import NewJob
from signalbox.tasks import prune_jobs
from signalbox.testing.rows import (
    blocked_job,
    count,
    dead_letter,
    ended_job,
    execution,
    pending_job,
    queued_job,
    running_job,
)
from signalbox.testing.stage import Stage
from tests.support.at_once import at_once
from tests.support.aws import shared_client
from tests.support.jobs import REGISTRY
from tests.support.lock_waits import wait_for_no_lock
from tests.support.partition_rows import past_partition

SECOND, DAY = timedelta(seconds=1), timedelta(days=1)


@pytest.fixture
def now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


@dataclass(frozen=True, slots=True)
class Bucket:
    """Hold the test's own bucket in AWS's stand-in."""

    s3: Any
    name: str

    def lines(self) -> list[dict[str, Any]]:
        """Return the lines of its objects, in order of key."""
        keys = [found["Key"] for found in self.s3.list_objects_v2(Bucket=self.name).get("Contents", [])]
        bodies = [gzip.decompress(self.s3.get_object(Bucket=self.name, Key=key)["Body"].read()) for key in keys]
        return [json.loads(line) for body in bodies for line in body.splitlines()]


@pytest.fixture
def bucket(moto: str, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto)
    s3, name = shared_client("s3", moto), f"archive-{uuid4().hex[:12]}"
    s3.create_bucket(Bucket=name)
    return Bucket(s3, name)


def note(db: psycopg.Connection, at: datetime) -> None:
    """Audit an operator's act at that time."""
    db.execute(
        "INSERT INTO signalbox.audit_log (at, actor, action, entity_type, entity_id) VALUES (%s, 'ann', 'x', 'job', 1)",
        (at,),
    )


def jobs_left(db: psycopg.Connection) -> set[str]:
    return {row[0] for row in db.execute("SELECT id::text FROM signalbox.jobs")}


def test_with_nothing_old_nothing_is_deleted(stage: Stage, db: psycopg.Connection, now: datetime) -> None:
    kept = {ended_job(db, now), queued_job(db, now)}
    assert stage.run("prune_jobs", now)["items"] == 0
    assert jobs_left(db) == kept


@pytest.mark.parametrize("status", ["completed", "cancelled"])
def test_job_is_deleted_with_its_attempts_after_its_retention(
    stage: Stage, db: psycopg.Connection, now: datetime, status: str
) -> None:
    ended_job(db, now - 30 * DAY - SECOND, status)
    kept = ended_job(db, now - 30 * DAY + SECOND, status)
    assert stage.run("prune_jobs", now)["items"] == 2
    assert jobs_left(db) == {kept}
    assert count(db, "signalbox.job_executions") == 1


def test_how_long_is_a_setting(stage: Stage, db: psycopg.Connection, now: datetime) -> None:
    ended_job(db, now - 8 * DAY)
    kept = ended_job(db, now - 6 * DAY)
    stage = stage.another(job_retention_days="7")
    stage.run("prune_jobs", now)
    assert jobs_left(db) == {kept}


def test_attempts_may_go_before_their_jobs(stage: Stage, db: psycopg.Connection, now: datetime) -> None:
    old, new = ended_job(db, now - 8 * DAY), ended_job(db, now - 6 * DAY)
    stage = stage.another(execution_retention_days="7")
    assert stage.run("prune_jobs", now)["items"] == 1
    assert jobs_left(db) == {old, new}
    assert count(db, f"signalbox.job_executions WHERE job_id = '{old}'") == 0


def test_what_has_not_ended_stays_however_old_its_id_is(stage: Stage, db: psycopg.Connection, now: datetime) -> None:
    ids = [f"0190c1e2-0000-7000-8000-00000000000{place}" for place in range(4)]
    kept = {
        pending_job(db, now + DAY, id=ids[0]),
        queued_job(db, now, id=ids[1]),
        running_job(db, id=ids[2]),
        ended_job(db, now - DAY, id=ids[3]),
    }
    stage.run("prune_jobs", now)
    assert jobs_left(db) == kept


def test_jobs_with_ids_of_another_kind_go_by_the_time_of_their_end(
    stage: Stage, db: psycopg.Connection, now: datetime
) -> None:
    low, high = "00000001-1111-4111-8111-111111111111", "f1111111-1111-4111-8111-111111111111"
    ended_job(db, now - 31 * DAY, id=high)
    ended_job(db, now - 31 * DAY, id=low)
    kept = {ended_job(db, now - DAY, id=low.replace("1", "2")), ended_job(db, now - DAY, id=high.replace("1", "2"))}
    assert stage.run("prune_jobs", now)["items"] == 4
    assert jobs_left(db) == kept


def test_a_failed_job_stays_while_its_dead_letter_is_open(stage: Stage, db: psycopg.Connection, now: datetime) -> None:
    failed = {
        status: ended_job(db, now - 60 * DAY, "failed")
        for status in ("pending", "investigating", "redriven", "resolved", "ignored", "archived")
    }
    for status, job_id in failed.items():
        if status != "archived":
            dead_letter(db, job_id, status)
    stage.run("prune_jobs", now)
    assert jobs_left(db) == {failed["pending"], failed["investigating"], failed["redriven"]}


def test_job_is_deleted_with_its_dependencies_unless_another_waits_for_it(
    stage: Stage, db: psycopg.Connection, now: datetime
) -> None:
    parent, child = ended_job(db, now - 40 * DAY), ended_job(db, now - DAY)
    db.execute(
        "INSERT INTO signalbox.job_dependencies VALUES (%s, %s, 'success', 'fail', true, now())", (child, parent)
    )
    waited_for = ended_job(db, now - 40 * DAY)
    waiting = blocked_job(db, on=waited_for)
    stage.run("prune_jobs", now)
    assert jobs_left(db) == {child, waited_for, waiting}
    assert count(db, "signalbox.job_dependencies") == 1


def test_a_key_is_free_again_once_its_job_was_pruned(stage: Stage, db: psycopg.Connection, now: datetime) -> None:
    first = ended_job(db, now - 31 * DAY, idempotency_key="k")
    kept = ended_job(db, now - 29 * DAY, idempotency_key="l")
    stage.run("prune_jobs", now)
    jobs = [NewJob(job_type="do_nothing", idempotency_key=key) for key in ("k", "k", "l")]
    second, third, other = submit(db, REGISTRY, jobs, now)
    assert (second.created, third.created, second.id == third.id) == (True, False, True)
    assert second.id != first
    assert (other.created, other.id) == (False, kept)


def test_a_group_whose_completion_job_is_gone_has_none(stage: Stage, db: psycopg.Connection, now: datetime) -> None:
    completion = ended_job(db, now - 31 * DAY, "cancelled")
    db.execute("INSERT INTO signalbox.job_groups (id, sealed, completion_job_id) VALUES ('g', true, %s)", (completion,))
    stage.run("prune_jobs", now)
    assert db.execute("SELECT completion_job_id FROM signalbox.job_groups").fetchall() == [(None,)]


def test_groups_go_when_they_ended_long_ago_or_have_nothing_left(
    stage: Stage, db: psycopg.Connection, now: datetime
) -> None:
    old = now - 31 * DAY
    for name, created, finished in [
        ("over", old, old),
        ("lately", old, now),
        ("open", old, None),
        ("empty", old, None),
        ("new", now, None),
    ]:
        db.execute(
            "INSERT INTO signalbox.job_groups (id, created_at, finished_at) VALUES (%s, %s, %s)",
            (name, created, finished),
        )
    pending_job(db, now + DAY, job_group="open")
    stage.run("prune_jobs", now)
    assert {row[0] for row in db.execute("SELECT id FROM signalbox.job_groups")} == {"lately", "open", "new"}


def test_minutes_go_after_two_days_and_hours_after_ninety(stage: Stage, db: psycopg.Connection, now: datetime) -> None:
    hour = now.replace(minute=0, second=0)
    ages = {"minute": [49, 47], "hour": [24 * 92, 24 * 89], "day": [24 * 400]}
    for period, hours in ages.items():
        for age in hours:
            db.execute(
                "INSERT INTO signalbox.job_metrics (period, starts_at, job_type, lane, durations, waits) "
                "VALUES (%s, %s, 'do_nothing', 'normal', '{}', '{}')",
                (period, hour - timedelta(hours=age)),
            )
    assert stage.run("prune_jobs", now)["items"] == 2
    left = db.execute("SELECT period, starts_at FROM signalbox.job_metrics").fetchall()
    assert {(period, round((hour - at) / timedelta(hours=1))) for period, at in left} == {
        ("minute", 47),
        ("hour", 24 * 89),
        ("day", 24 * 400),
    }


def test_it_goes_on_in_batches_past_what_stays(
    stage: Stage, db: psycopg.Connection, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prune_jobs, "BATCH", 3)
    for place in range(20):
        ended_job(db, now - 31 * DAY, "completed" if place % 2 else "failed")
    for job_id in [row[0] for row in db.execute("SELECT id::text FROM signalbox.jobs WHERE status = 'failed'")]:
        dead_letter(db, job_id)
    for _ in range(10):
        execution(db, now - 31 * DAY, job_id=str(uuid4()))
    stage.run("prune_jobs", now)
    assert {row[0] for row in db.execute("SELECT status FROM signalbox.jobs")} == {"failed"}
    assert len(jobs_left(db)) == 10


def test_a_budget_that_ends_leaves_the_rest_to_a_continuation(
    stage: Stage, db: psycopg.Connection, now: datetime
) -> None:
    ended_job(db, now - 31 * DAY)
    assert stage.run("prune_jobs", now, seconds=10)["more"] is True
    stage.deliver(now)
    assert jobs_left(db) == set()


def test_a_job_in_another_hand_is_passed_by(stage: Stage, dsn: str, db: psycopg.Connection, now: datetime) -> None:
    held, _ = ended_job(db, now - 31 * DAY), ended_job(db, now - 31 * DAY)
    wait_for_no_lock(db)
    with psycopg.connect(dsn) as other:
        other.execute("SELECT FROM signalbox.jobs WHERE id = %s FOR UPDATE", (held,))
        stage.run("prune_jobs", now)
    assert jobs_left(db) == {held}


def test_two_at_once_share_the_work(stage: Stage, db: psycopg.Connection, now: datetime) -> None:
    for _ in range(100):
        ended_job(db, now - 31 * DAY)
    other = stage.another()
    answers = at_once(lambda: stage.run("prune_jobs", now), lambda: other.run("prune_jobs", now + DAY))
    assert sum(answer["items"] for answer in answers) == 200
    assert jobs_left(db) == set()


def test_notifications_are_deleted_after_their_retention_read_or_unread(
    stage: Stage, db: psycopg.Connection, now: datetime
) -> None:
    told = (
        "INSERT INTO signalbox.notifications (recipient, body, job_id, created_at, read_at) VALUES (%s, '', %s, %s, %s)"
    )
    ages = {"old": 91 * DAY, "old and read": 91 * DAY, "kept": 89 * DAY}
    for recipient, age in ages.items():
        db.execute(told, (recipient, uuid4(), now - age, now if "read" in recipient else None))
    assert stage.run("prune_jobs", now)["items"] == 2
    assert db.execute("SELECT recipient FROM signalbox.notifications").fetchall() == [("kept",)]


def test_audit_rows_go_after_a_year(stage: Stage, db: psycopg.Connection, now: datetime) -> None:
    note(db, now - 365 * DAY - SECOND)
    note(db, now - 365 * DAY + SECOND)
    assert stage.run("prune_jobs", now)["items"] == 1
    assert count(db, "signalbox.audit_log") == 1


@pytest.mark.parametrize("partitioned", [False, True])
def test_what_is_pruned_is_archived_before(
    stage: Stage, db: psycopg.Connection, now: datetime, bucket: Bucket, partitioned: bool
) -> None:
    if partitioned:
        past_partition(db, "job_executions", 6)
    old = ended_job(db, now - 40 * DAY)
    ended_job(db, now - 29 * DAY)
    note(db, now - 366 * DAY)
    stage = stage.another(archive_bucket=bucket.name)
    assert stage.run("prune_jobs", now)["items"] == 3
    lines = bucket.lines()
    assert [line["table"] for line in lines] == ["audit_log", "jobs", "job_executions"]
    assert [line["row"].get("id", line["row"].get("job_id")) for line in lines[1:]] == [old, old]
    assert lines[1]["row"]["status"] == "completed"
    assert len(jobs_left(db)) == 1


def test_nothing_is_pruned_that_the_archive_did_not_take(
    stage: Stage, db: psycopg.Connection, now: datetime, bucket: Bucket
) -> None:
    past_partition(db, "job_executions", 8)
    old = ended_job(db, now - 52 * DAY)
    stage = stage.another(archive_bucket="there-is-no-such-bucket")
    with pytest.raises(ClientError):
        stage.run("prune_jobs", now)
    assert jobs_left(db) == {old}
    stage = stage.another(archive_bucket=bucket.name)
    stage.run("prune_jobs", now, force=True)
    assert [line["table"] for line in bucket.lines()] == ["jobs", "job_executions"]
    assert jobs_left(db) == set()
