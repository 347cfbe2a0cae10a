"""archive_audit_logs: whatever crashes, each record is in the database or in exactly one object of cold storage."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest

from forecasts.tasks import archive_audit_logs
from signalbox.errors import ArchiveRefused, ArchiveUnavailable
from signalbox.testing.rows import count
from signalbox.testing.stage import NOON, Stage
from signalbox.testing.stand_in import Request
from signalbox_laptop.stand_ins.faults import Fault
from tests.support.at_once import two_at_once
from tests.support.aws import Aws
from tests.support.contexts import context_of
from tests.support.lost_session import lose_session
from tests.support.s3_front import S3Front

TASK = "archive_audit_logs"
LOGS = "forecasts.audit_logs"
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
YEAR = 365 * DAY


@pytest.fixture
def front(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Front]:
    with S3Front(aws.endpoint) as front:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", front.url)
        yield front


@pytest.fixture
def small_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_audit_logs, "MOST_RECORDS", 4)


def log(db: psycopg.Connection, created_at: datetime | str, number: int = 1, detail: str = "{}") -> None:
    db.execute(
        "INSERT INTO forecasts.audit_logs (actor, action, entity_type, entity_id, detail, created_at) "
        "SELECT 'a person', 'thing.done', 'thing', n, %s, %s FROM generate_series(1, %s) AS n",
        (detail, created_at, number),
    )


def ids(db: psycopg.Connection) -> list[int]:
    return [id_ for (id_,) in db.execute("SELECT id FROM forecasts.audit_logs ORDER BY id").fetchall()]


def objects(aws: Aws) -> dict[str, list[dict[str, Any]]]:
    """Return the records in each object of cold storage, restored."""
    found = {}
    for entry in aws.s3.list_objects_v2(Bucket=aws.archive_bucket).get("Contents", []):
        aws.s3.restore_object(Bucket=aws.archive_bucket, Key=entry["Key"], RestoreRequest={"Days": 1})
        body = aws.s3.get_object(Bucket=aws.archive_bucket, Key=entry["Key"])["Body"].read()
        found[entry["Key"]] = [json.loads(line) for line in gzip.decompress(body).splitlines()]
    return found


def archived_ids(aws: Aws) -> list[int]:
    return sorted(record["id"] for records in objects(aws).values() for record in records)


def archives(db: psycopg.Connection) -> list[tuple[Any, ...]]:
    columns = "key, first_id, last_id, row_count, archived_at"
    return db.execute(f"SELECT {columns} FROM forecasts.audit_archives ORDER BY first_id".encode()).fetchall()


def test_records_older_than_a_year_go_to_cold_storage_to_the_second(
    stage: Stage, aws: Aws, db: psycopg.Connection
) -> None:
    for age in (YEAR + SECOND, YEAR, YEAR - SECOND):
        log(db, NOON - age, detail='{"big": 12345678901234567890123, "exact": 1.10, "text": "ä\\n"}')
    assert stage.run(TASK)["items"] == 1
    assert ids(db) == [2, 3]
    [(key, records)] = objects(aws).items()
    assert key == "audit_logs/2025/03/10/1-1.jsonl.gz"
    assert records == [
        {
            "id": 1,
            "organization_id": None,
            "actor": "a person",
            "action": "thing.done",
            "entity_type": "thing",
            "entity_id": "1",
            "detail": {"big": 12345678901234567890123, "exact": 1.10, "text": "ä\n"},
            "created_at": "2025-03-10T11:59:59Z",
        }
    ]
    assert archives(db) == [(key, 1, 1, 1, NOON)]


def test_the_object_is_cold_and_bears_the_checksum_that_the_table_has(
    stage: Stage, aws: Aws, db: psycopg.Connection
) -> None:
    log(db, NOON - 2 * YEAR, 3)
    stage.run(TASK)
    [(key, records)] = objects(aws).items()
    head = aws.s3.head_object(Bucket=aws.archive_bucket, Key=key, ChecksumMode="ENABLED")
    assert (head["StorageClass"], head["ContentType"]) == ("GLACIER", "application/gzip")
    kept = db.execute("SELECT bytes, sha256, ids FROM forecasts.audit_archives").fetchone()
    assert kept == (head["ContentLength"], head["ChecksumSHA256"], None)
    assert len(records) == 3


def test_with_nothing_old_nothing_happens(stage: Stage, aws: Aws, db: psycopg.Connection) -> None:
    log(db, NOON)
    assert stage.run(TASK)["items"] == 0
    assert (objects(aws), archives(db), ids(db)) == ({}, [], [1])


def test_no_object_holds_more_records_than_it_may(
    stage: Stage, aws: Aws, db: psycopg.Connection, small_objects: None
) -> None:
    log(db, NOON - 2 * YEAR, 10)
    log(db, NOON)
    assert stage.run(TASK)["items"] == 10
    assert sorted(len(records) for records in objects(aws).values()) == [2, 4, 4]
    assert archived_ids(aws) == list(range(1, 11))
    assert ids(db) == [11]


def test_large_records_make_an_object_of_fewer(
    stage: Stage, aws: Aws, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_audit_logs, "MOST_BYTES", 1000)
    log(db, NOON - 2 * YEAR, 3, detail=json.dumps({"text": "x" * 600}))
    log(db, NOON - 2 * YEAR, 1, detail=json.dumps({"text": "x" * 6000}))
    assert stage.run(TASK)["items"] == 4
    assert sorted(len(records) for records in objects(aws).values()) == [2, 2]


def test_a_record_that_is_written_late_gets_an_object_of_its_own(
    stage: Stage, aws: Aws, db: psycopg.Connection
) -> None:
    """An import may write it so: the day it belongs to has been archived before."""
    log(db, NOON - 2 * YEAR, 2)
    stage.run(TASK)
    log(db, NOON - 2 * YEAR)
    stage.run(TASK, NOON + DAY)
    assert {key.rpartition("/")[2]: len(records) for key, records in objects(aws).items()} == {
        "1-2.jsonl.gz": 2,
        "3-3.jsonl.gz": 1,
    }


def test_a_record_from_before_all_time_stops_nothing(stage: Stage, aws: Aws, db: psycopg.Connection) -> None:
    log(db, "-infinity")
    log(db, NOON - 2 * YEAR)
    log(db, "infinity")
    assert stage.run(TASK)["items"] == 2
    assert (archived_ids(aws), ids(db)) == ([1, 2], [3])


# Each function makes a run die in another place.
def refuse_upload(front: S3Front, dsn: str) -> None:
    front.faults.add(Fault(matching="PUT", status=403))


def lose_answer_to_upload(front: S3Front, dsn: str) -> None:
    front.faults.add(Fault(matching="PUT", lost=True))


def refuse_to_describe_upload(front: S3Front, dsn: str) -> None:
    def refuse(asked: Request) -> None:
        if asked.method == "PUT":
            front.faults.add(Fault(matching="HEAD", status=403))

    front.passed = refuse


def refuse_deletion(front: S3Front, dsn: str) -> None:
    crash_at(dsn, "DELETE ON forecasts.audit_logs")


def refuse_close(front: S3Front, dsn: str) -> None:
    crash_at(dsn, "UPDATE ON forecasts.audit_archives")


def crash_at(dsn: str, event: str) -> None:
    function = "LANGUAGE plpgsql AS $$ BEGIN RAISE 'as the test wants it'; END $$"
    with psycopg.connect(dsn, autocommit=True) as other:
        other.execute(f"CREATE FUNCTION crash() RETURNS trigger {function}".encode())
        other.execute(f"CREATE TRIGGER crash BEFORE {event} FOR EACH ROW EXECUTE FUNCTION crash()".encode())


CRASHES = [
    refuse_upload,
    lose_answer_to_upload,
    refuse_to_describe_upload,
    refuse_deletion,
    refuse_close,
]
Crash = Callable[[S3Front, str], None]


def mend(front: S3Front, dsn: str) -> None:
    """Remove the cause of the crash, and the dead worker's lease."""
    front.faults.replace([])
    front.passed = lambda _: None
    with psycopg.connect(dsn, autocommit=True) as other:
        other.execute("DROP FUNCTION IF EXISTS crash() CASCADE")
        other.execute("UPDATE signalbox.job_locks SET expires_at = now()")


@pytest.mark.usefixtures("small_objects")
@pytest.mark.parametrize("crash", CRASHES)
def test_after_crash_each_record_is_in_one_object_despite_newly_due_ones(
    stage: Stage, dsn: str, aws: Aws, db: psycopg.Connection, front: S3Front, crash: Crash
) -> None:
    log(db, NOON - YEAR - 2 * DAY, 6)  # one object, and half of another
    crash(front, dsn)
    with pytest.raises((ArchiveUnavailable, psycopg.Error)):
        stage.run(TASK)
    assert len(ids(db)) == 6
    planned = [row[0] for row in archives(db)]
    assert len(planned) == 1

    mend(front, dsn)
    log(db, NOON - YEAR - 3 * DAY, 1)  # even one older than the others
    log(db, NOON - YEAR - DAY / 2, 3)
    assert stage.run(TASK, NOON + DAY)["items"] == 10

    assert ids(db) == []
    assert archived_ids(aws) == list(range(1, 11))
    assert [row[0] for row in archives(db)] == sorted(objects(aws), key=lambda key: objects(aws)[key][0]["id"])
    assert objects(aws)[planned[0]] == [record for record in objects(aws)[planned[0]] if record["id"] <= 4]


@pytest.mark.parametrize("crash", [refuse_to_describe_upload, refuse_deletion, refuse_close])
def test_what_was_uploaded_before_a_crash_is_not_uploaded_again(
    stage: Stage, dsn: str, db: psycopg.Connection, front: S3Front, crash: Crash
) -> None:
    log(db, NOON - 2 * YEAR, 3)
    crash(front, dsn)
    with pytest.raises((ArchiveUnavailable, psycopg.Error)):
        stage.run(TASK)
    mend(front, dsn)
    uploads = front.count("PUT")
    assert stage.run(TASK, NOON + DAY)["items"] == 3
    assert front.count("PUT") == uploads


def test_a_database_that_goes_away_meanwhile_loses_nothing(
    stage: Stage, aws: Aws, db: psycopg.Connection, front: S3Front
) -> None:
    log(db, NOON - 2 * YEAR, 3)
    front.passed = lambda _: lose_session(stage.dsn)
    with pytest.raises(psycopg.OperationalError):
        stage.run(TASK)
    assert ids(db) == [1, 2, 3]
    front.passed = lambda _: None
    assert stage.run(TASK)["items"] == 3
    assert (ids(db), archived_ids(aws)) == ([], [1, 2, 3])


def test_an_object_that_arrived_damaged_is_no_reason_to_delete_anything(
    stage: Stage, aws: Aws, db: psycopg.Connection, front: S3Front
) -> None:
    log(db, NOON - 2 * YEAR, 3)

    def damage(asked: Request) -> None:
        if asked.method == "PUT":
            key = asked.path.removeprefix(f"/{aws.archive_bucket}/")
            aws.s3.put_object(Bucket=aws.archive_bucket, Key=key, Body=b"damaged", ChecksumAlgorithm="SHA256")

    front.passed = damage
    with pytest.raises(ArchiveUnavailable, match="was sent as"):
        stage.run(TASK)
    assert ids(db) == [1, 2, 3]


def test_something_else_under_the_name_is_not_overwritten(stage: Stage, aws: Aws, db: psycopg.Connection) -> None:
    """Another database with the same ids may have written it."""
    log(db, NOON - 2 * YEAR)
    key = "audit_logs/2024/03/10/1-1.jsonl.gz"
    aws.s3.put_object(Bucket=aws.archive_bucket, Key=key, Body=b"theirs")
    with pytest.raises(ArchiveRefused, match="move it away"):
        stage.run(TASK)
    assert ids(db) == [1]
    assert aws.s3.get_object(Bucket=aws.archive_bucket, Key=key)["Body"].read() == b"theirs"
    aws.s3.delete_object(Bucket=aws.archive_bucket, Key=key)
    assert stage.run(TASK)["items"] == 1


def test_records_deleted_by_hand_leave_their_plan_empty_and_no_object(
    stage: Stage, aws: Aws, db: psycopg.Connection, front: S3Front
) -> None:
    log(db, NOON - 2 * YEAR, 2)
    front.faults.add(Fault(matching="PUT", status=403, times=1))
    with pytest.raises(ArchiveUnavailable):
        stage.run(TASK)
    db.execute("DELETE FROM forecasts.audit_logs")
    log(db, NOON - 2 * YEAR)
    assert stage.run(TASK)["items"] == 1
    assert archived_ids(aws) == [3]
    assert [row[3] for row in archives(db)] == [1]


def test_a_worker_that_comes_late_with_a_plan_changes_nothing(
    stage: Stage, aws: Aws, db: psycopg.Connection, front: S3Front
) -> None:
    """While it uploads the records that it fetched, another worker archives them."""
    log(db, NOON - 2 * YEAR, 3)
    other = stage.another()

    def overtake(asked: Request) -> None:
        if asked.method == "PUT":
            front.passed = lambda _: None
            context = context_of(other, TASK, NOON)
            assert archive_audit_logs.archive_audit_logs(context).items == 3

    front.passed = overtake
    assert stage.run(TASK)["items"] == 0
    assert (ids(db), archived_ids(aws)) == ([], [1, 2, 3])
    assert [row[3] for row in archives(db)] == [3]


def test_two_runs_at_once_store_each_record_once(
    stage: Stage, aws: Aws, db: psycopg.Connection, small_objects: None
) -> None:
    log(db, NOON - 3 * YEAR, 30)
    answers = two_at_once(stage, TASK, NOON - DAY, NOON)
    done = [answer["items"] for answer in answers if answer["status"] == "succeeded"]
    assert sum(done) == 30
    assert Counter(archived_ids(aws)) == Counter(range(1, 31))
    assert count(db, LOGS) == 0


def test_a_run_without_time_leaves_the_rest_to_a_continuation(stage: Stage, aws: Aws, db: psycopg.Connection) -> None:
    log(db, NOON - 2 * YEAR, 3)
    assert stage.run(TASK, seconds=10)["more"] is True  # only the margin
    assert [answer["items"] for answer in stage.deliver()] == [3]
    assert archived_ids(aws) == [1, 2, 3]


def test_a_run_for_a_past_day_moves_what_that_day_would_have(stage: Stage, aws: Aws, db: psycopg.Connection) -> None:
    log(db, NOON - YEAR - 3 * DAY)
    log(db, NOON - YEAR - DAY)
    stage.run(TASK, reference_time=(NOON - 2 * DAY).isoformat())
    assert (ids(db), archived_ids(aws)) == ([2], [1])


def test_the_same_records_make_the_same_bytes(stage: Stage, aws: Aws, db: psycopg.Connection) -> None:
    log(db, NOON - 2 * YEAR, 100, detail='{"b": 1, "a": [1, 2]}')
    digests = set()
    for zone in ("UTC", "Asia/Kathmandu"):
        with db.transaction(force_rollback=True):
            db.execute(f"SET LOCAL timezone = '{zone}'".encode())
            db.execute(
                "INSERT INTO forecasts.audit_archives (key, first_id, last_id, ids, planned_at) "
                "SELECT 'k', 1, 100, array_agg(id), now() FROM forecasts.audit_logs"
            )
            lines = db.execute(archive_audit_logs.SQL["fetch"], {"key": "k"}).fetchall()
            digests.add(hashlib.sha256(repr(lines).encode()).hexdigest())
            assert len(lines) == 100
    assert len(digests) == 1
