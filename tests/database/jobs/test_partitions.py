"""Attempts lie in partitions by their job's time; dropping old ones loses nothing wanted."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from signalbox.batches.partitions import length_of
from signalbox.postgres.uuid7 import first_id
from signalbox.testing.rows import (
    blocked_job,
    count,
    dead_letter,
    ended_job,
    execution,
    id_of,
    pending_job,
    queued_job,
    running_job,
)
from signalbox.testing.stage import Stage
from tests.support.lock_waits import wait_until_blocked
from tests.support.partition_rows import WEEK, partitions_of, past_partition, place_of

DAY = timedelta(days=1)
END = "SELECT signalbox.complete_job(lease_token, id, 0, 1, 1, NULL, NULL, NULL) FROM signalbox.jobs WHERE id = %s"
DROP_ALL = (
    "SELECT signalbox.drop_partition('job_executions', name, '{}') FROM signalbox.partitions"
    " WHERE of_table = 'job_executions'"
)


@pytest.fixture
def now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


@pytest.fixture
def old(db: psycopg.Connection) -> datetime:
    """Return an instant whose partitions are old enough to be dropped."""
    return past_partition(db, "job_executions", 7)


@pytest.fixture
def other(dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(dsn) as connection:
        yield connection


def drop(db: psycopg.Connection, which: datetime, now: datetime) -> Any:
    row = db.execute("SELECT signalbox.drop_executions(%s, %s)", (name_of(which), now - 30 * DAY)).fetchone()
    assert row is not None
    return row[0]


def name_of(which: datetime) -> str:
    return f"job_executions_{which - WEEK / 2:%Y%m%d}"


def left(db: psycopg.Connection) -> set[str]:
    return {row[0] for row in db.execute("SELECT id::text FROM signalbox.jobs")}


def test_jobs_and_each_partition_are_vacuumed_by_small_shares(db: psycopg.Connection, old: datetime) -> None:
    """Partitions from before and after the migration, the default one and that of other ids all count."""
    wanted = {"autovacuum_vacuum_scale_factor=0.02", "autovacuum_vacuum_threshold=1000",
              "autovacuum_analyze_scale_factor=0.05"}  # fmt: skip
    parts = db.execute(
        "SELECT c.relname, c.reloptions FROM pg_class AS c LEFT JOIN pg_inherits AS i ON c.oid = i.inhrelid"
        " WHERE c.relkind = 'r' AND (i.inhparent = 'signalbox.job_executions'::regclass"
        " OR c.oid = 'signalbox.jobs'::regclass)"
    ).fetchall()
    assert len(parts) >= 6
    assert [name for name, options in parts if not wanted <= set(options or ())] == []


def test_a_new_database_has_partitions_for_now_and_for_weeks_ahead(db: psycopg.Connection, now: datetime) -> None:
    for table in ("job_executions", "job_history"):
        parts = partitions_of(db, table)
        assert parts[0][0] <= now
        assert parts[-1][1] >= now + 12 * DAY  # made before midnight, perhaps
        assert [end for _, end in parts[:-1]] == [start for start, _ in parts[1:]]


def test_an_attempt_lies_in_the_partition_of_its_jobs_time(db: psycopg.Connection, now: datetime) -> None:
    assert place_of(db, ended_job(db, now)) == f"{partitions_of(db, 'job_executions')[0][0]:%Y%m%d}"


def test_what_no_partition_is_for_is_kept_all_the_same(db: psycopg.Connection, now: datetime) -> None:
    ids = [id_of(now + 90 * DAY), id_of(now - 90 * DAY), f"f{str(uuid4())[1:]}"]
    assert [place_of(db, ended_job(db, now, id=id_)) for id_ in ids] == ["default", "default", "others"]


def test_an_id_made_by_the_database_is_like_one_of_ours(db: psycopg.Connection) -> None:
    rows = db.execute("SELECT signalbox.new_id() FROM generate_series(1, 100)").fetchall()
    made = [row[0] for row in rows]
    assert {(UUID(str(one)).version, UUID(str(one)).variant) for one in made} == {(7, "specified in RFC 4122")}
    begun, over = db.execute("SELECT now() - interval '1 s', clock_timestamp() + interval '1 s'").fetchone() or (0, 0)
    assert all(UUID(first_id(begun)) < one < UUID(first_id(over)) for one in made)
    assert db.execute("SELECT signalbox.first_id(%s)::text", (over,)).fetchone() == (first_id(over),)
    assert len(set(made)) == 100


def test_all_of_a_partition_goes_at_once_when_all_of_it_may(
    stage: Stage, db: psycopg.Connection, old: datetime, now: datetime
) -> None:
    parent, child = ended_job(db, old), ended_job(db, old, "cancelled")
    db.execute(
        "INSERT INTO signalbox.job_dependencies VALUES (%s, %s, 'success', 'fail', true, now())", (child, parent)
    )
    dead_letter(db, ended_job(db, old, "failed"), "resolved")
    kept = ended_job(db, now)
    assert stage.run("prune_jobs", now)["items"] == 6
    assert left(db) == {kept}
    assert count(db, "signalbox.job_executions") == 1
    assert count(db, "signalbox.job_dependencies") == 0
    assert all(start > old for start, _ in partitions_of(db, "job_executions"))


def test_what_is_still_wanted_survives_its_partition(
    stage: Stage, db: psycopg.Connection, old: datetime, now: datetime
) -> None:
    ended_job(db, old)
    open_letter = ended_job(db, old, "failed")
    dead_letter(db, open_letter)
    waited_for = ended_job(db, old)
    with_attempt = ended_job(db, now - DAY, id=id_of(old))
    kept = {
        with_attempt,
        running_job(db, id=id_of(old)),
        pending_job(db, now + 300 * DAY, id=id_of(old)),
        queued_job(db, now, id=id_of(old)),
        blocked_job(db, on=waited_for, id=id_of(old)),
        open_letter,
        waited_for,
    }
    # The first with its attempt, and those of two that ended long ago.
    assert stage.run("prune_jobs", now)["items"] == 4
    assert left(db) == kept
    assert place_of(db, with_attempt) == "default"
    assert count(db, "signalbox.job_executions") == 1
    assert [start for start, _ in partitions_of(db, "job_executions") if start < old] == []


def test_a_partition_stays_while_too_much_of_it_must(db: psycopg.Connection, old: datetime, now: datetime) -> None:
    ended_job(db, old)
    ended_job(db, now, id=id_of(old))
    values = (name_of(old), now - 30 * DAY)
    assert db.execute("SELECT signalbox.drop_executions(%s, %s, 0)", values).fetchone() == (None,)
    assert count(db, "signalbox.job_executions") == 2


def test_younger_partition_is_never_dropped(db: psycopg.Connection, now: datetime) -> None:
    young = past_partition(db, "job_executions", 1)
    ended_job(db, young)
    assert drop(db, young, now) is None
    today = f"job_executions_{partitions_of(db, 'job_executions')[-1][0]:%Y%m%d}"
    for name in (today, "job_executions_default", "job_executions_others", "jobs", "job_history_default", "none"):
        assert db.execute("SELECT signalbox.drop_executions(%s, %s)", (name, now + 999 * DAY)).fetchone() == (None,)
    assert count(db, "signalbox.job_executions") == 1


def test_a_look_with_a_snapshot_older_than_the_lock_is_refused(
    db: psycopg.Connection, old: datetime, now: datetime
) -> None:
    db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    with pytest.raises(psycopg.errors.ActiveSqlTransaction, match="READ COMMITTED only"):
        drop(db, old, now)


def test_an_attempt_that_ends_while_its_partition_goes_is_kept(
    dsn: str, db: psycopg.Connection, other: psycopg.Connection, old: datetime, now: datetime
) -> None:
    job_id = running_job(db, id=id_of(old))
    assert drop(other, old, now) == 0
    with ThreadPoolExecutor(1) as pool, psycopg.connect(dsn, autocommit=True) as worker:
        done = pool.submit(worker.execute, END, (job_id,))
        wait_until_blocked(db)
        other.commit()
        done.result()
    assert place_of(db, job_id) == "default"


def test_a_lock_that_is_not_to_be_had_is_left_for_another_night(
    stage: Stage, db: psycopg.Connection, other: psycopg.Connection, now: datetime
) -> None:
    db.execute("ALTER FUNCTION signalbox.drop_executions SET lock_timeout = '10ms'")
    # Near its end: what is older than a partition's length beyond the retention goes row by row.
    ended_job(db, past_partition(db, "job_executions", 6) + 3 * DAY)
    other.execute("SELECT FROM signalbox.job_executions")
    assert stage.run("prune_jobs", now)["status"] == "succeeded"
    assert count(db, "signalbox.job_executions") == 1
    other.commit()
    stage.run("prune_jobs", now + DAY)
    assert count(db, "signalbox.job_executions") == 0


def test_attempts_that_ended_lately_stay(db: psycopg.Connection, old: datetime, now: datetime) -> None:
    job_id = ended_job(db, now - DAY, id=id_of(old))
    ended_job(db, old)
    execution(db, old, job_id=job_id, attempt_number=2)
    assert drop(db, old, now) == 2
    assert db.execute("SELECT job_id::text, attempt_number FROM signalbox.job_executions").fetchall() == [(job_id, 1)]


def test_months_without_partitions_lose_nothing_and_are_made_up_for(
    stage: Stage, db: psycopg.Connection, now: datetime
) -> None:
    db.execute(DROP_ALL)
    past_partition(db, "job_executions", 9)
    jobs = {ended_job(db, now - 20 * DAY), ended_job(db, now), ended_job(db, now, id=id_of(now - 25 * DAY))}
    assert {place_of(db, job_id) for job_id in jobs} == {"default"}
    stage.run("prune_jobs", now)
    assert left(db) == jobs
    assert (count(db, "signalbox.job_executions"), count(db, "signalbox.job_executions_default")) == (3, 0)
    assert partitions_of(db, "job_executions")[-1][1] >= now + 13 * DAY


def test_a_stretch_too_big_to_move_stays_where_it_is(db: psycopg.Connection, now: datetime) -> None:
    db.execute(DROP_ALL)
    db.execute(
        "INSERT INTO signalbox.job_executions"
        " (job_id, attempt_number, job_type, lane, status, lease_token, worker_id, started_at, completed_at)"
        " SELECT signalbox.new_id(), 1, 'do_nothing', 'normal', 'completed', gen_random_uuid(), 'tests', now(), now()"
        " FROM generate_series(1, 10001)"
    )
    db.execute("SELECT signalbox.make_partitions('job_executions', 7)")
    assert count(db, "signalbox.job_executions_default") == 10_001
    assert partitions_of(db, "job_executions")[0][0] > now
    assert place_of(db, ended_job(db, now)) == "default"


def test_making_partitions_twice_makes_them_once_and_of_nothing_else(db: psycopg.Connection) -> None:
    db.execute("SELECT signalbox.make_partitions('job_executions', 7)")
    before = partitions_of(db, "job_executions")
    assert db.execute("SELECT signalbox.make_partitions('job_executions', 7)").fetchone() == (0,)
    for table, days in (("jobs", 7), ("job_executions", 0), ("job_executions", 1000)):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="can't make partitions of"):
            db.execute("SELECT signalbox.make_partitions(%s, %s)", (table, days))
    assert partitions_of(db, "job_executions") == before


def test_partition_spans_at_most_a_quarter_of_retention_and_few_exist() -> None:
    for kept, shorter in ((30, 30), (1, 1), (7, 7), (365, 7), (3650, 3650)):
        length = length_of(shorter * DAY, kept * DAY)
        assert length >= DAY
        assert kept * DAY / length <= 13
        assert length <= max(DAY, kept * DAY / 4)
    assert length_of(30 * DAY, 30 * DAY) == WEEK


@pytest.fixture
def writer(db: psycopg.Connection) -> Iterator[str]:
    """Return a role that owns nothing and may call what the archiver calls."""
    role = f"writer_of_{db.info.dbname}"
    db.execute(f"CREATE ROLE {role}".encode())
    db.execute(f"GRANT USAGE ON SCHEMA signalbox TO {role}".encode())
    for function in ("make_partitions", "drop_executions"):
        db.execute(f"GRANT EXECUTE ON FUNCTION signalbox.{function} TO {role}".encode())
    yield role
    db.execute("RESET ROLE")
    db.execute(f"DROP OWNED BY {role}".encode())
    db.execute(f"DROP ROLE {role}".encode())


def test_a_role_that_owns_no_table_drops_by_the_functions_alone(
    db: psycopg.Connection, writer: str, old: datetime, now: datetime
) -> None:
    ended_job(db, old)
    db.execute(
        "SELECT signalbox.drop_partition('job_executions', max(name), '{}') FROM signalbox.partitions"
        " WHERE of_table = 'job_executions'"
    )
    db.execute(f"SET ROLE {writer}".encode())
    name = name_of(old)
    for forbidden in (
        f"DROP TABLE signalbox.{name}",
        f"SELECT signalbox.drop_partition('job_executions', '{name}', '{{}}')",
        f"SELECT signalbox.drop_runs('{name}', '{{}}')",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute(forbidden.encode())
    assert drop(db, old, now) == 1
    assert db.execute("SELECT signalbox.make_partitions('job_executions', 7) > 0").fetchone() == (True,)
