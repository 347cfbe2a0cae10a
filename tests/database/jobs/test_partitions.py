"""Jobs lie in partitions by their time, and old ones go with theirs: a drop that loses nothing still wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from signalbox.jobs.catalogue import Catalogue
from signalbox.jobs.ids import first_id, new_ids
from signalbox.jobs.submission import NewJob, submit
from signalbox.partitions import length_of
from signalbox.worker.lease import Claim
from tests.support.invoke_recorder import InvokeRecorder
from tests.support.job_rows import (
    blocked_job,
    dead_letter,
    ended_job,
    execution,
    id_of,
    pending_job,
    queued_job,
    running_job,
    statuses,
)
from tests.support.jobs import TEST_JOB_TYPES
from tests.support.ledger_rows import count
from tests.support.partition_rows import WEEK, partitions_of, past_partition, place_of, wait_until_waiting
from tests.support.sweeps import Sweeps

DAY = timedelta(days=1)
CATALOGUE = Catalogue(TEST_JOB_TYPES)


@pytest.fixture
def now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


@pytest.fixture
def old(db: psycopg.Connection) -> datetime:
    """An instant whose partitions are old enough to be dropped."""
    past_partition(db, "job_executions", 7)
    return past_partition(db, "jobs", 7)


@pytest.fixture
def sweeps(dsn: str, invokes: InvokeRecorder) -> Iterator[Sweeps]:
    with Sweeps(dsn, invokes) as sweeps:
        yield sweeps


@pytest.fixture
def other(dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(dsn) as connection:
        yield connection


def drop(db: psycopg.Connection, which: datetime, now: datetime, table: str = "jobs") -> Any:
    name = f"{table}_{which - WEEK / 2:%Y%m%d}"
    function = {"jobs": "drop_jobs", "job_executions": "drop_executions"}[table]
    row = db.execute(f"SELECT signalbox.{function}(%s, %s)".encode(), (name, now - 30 * DAY)).fetchone()
    assert row is not None
    return row[0]


def left(db: psycopg.Connection) -> set[str]:
    return {row[0] for row in db.execute("SELECT id::text FROM signalbox.jobs")}


def test_each_partition_is_vacuumed_by_small_shares(db: psycopg.Connection, old: datetime) -> None:
    """Those that the migration found, those that are made after it, the default one and that of other ids."""
    wanted = {"autovacuum_vacuum_scale_factor=0.02", "autovacuum_vacuum_threshold=1000",
              "autovacuum_analyze_scale_factor=0.05"}  # fmt: skip
    parts = db.execute(
        "SELECT c.relname, c.reloptions FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid"
        " WHERE i.inhparent IN ('signalbox.jobs'::regclass, 'signalbox.job_executions'::regclass) AND c.relkind = 'r'"
    ).fetchall()
    assert len(parts) >= 10
    assert [name for name, options in parts if not wanted <= set(options or ())] == []


def test_a_new_database_has_partitions_for_now_and_for_weeks_ahead(db: psycopg.Connection, now: datetime) -> None:
    for table in ("jobs", "job_executions", "job_history"):
        parts = partitions_of(db, table)
        assert parts[0][0] <= now
        assert parts[-1][1] >= now + 12 * DAY  # made before midnight, perhaps
        assert [end for _, end in parts[:-1]] == [start for start, _ in parts[1:]]


def test_a_job_and_its_attempts_lie_in_the_partition_of_the_jobs_time(db: psycopg.Connection, now: datetime) -> None:
    job_id = running_job(db)
    today = f"{partitions_of(db, 'jobs')[0][0]:%Y%m%d}"
    assert (place_of(db, job_id), place_of(db, job_id, "job_executions")) == (today, today)


def test_what_no_partition_is_for_is_kept_all_the_same(db: psycopg.Connection, now: datetime) -> None:
    ahead, behind = queued_job(db, now, id=id_of(now + 90 * DAY)), queued_job(db, now, id=id_of(now - 90 * DAY))
    random = queued_job(db, now, id=f"f{str(uuid4())[1:]}")
    assert [place_of(db, job_id) for job_id in (ahead, behind, random)] == ["default", "default", "others"]
    assert statuses(db, ahead, behind, random) == ["queued"] * 3


def test_an_id_made_by_the_database_is_like_one_of_ours(db: psycopg.Connection) -> None:
    rows = db.execute("SELECT signalbox.new_id() FROM generate_series(1, 100)").fetchall()
    made = [row[0] for row in rows]
    assert {(UUID(str(one)).version, UUID(str(one)).variant) for one in made} == {(7, "specified in RFC 4122")}
    begun, over = db.execute("SELECT now() - interval '1 s', clock_timestamp() + interval '1 s'").fetchone() or (0, 0)
    assert all(UUID(first_id(begun)) < one < UUID(first_id(over)) for one in made)
    assert db.execute("SELECT signalbox.first_id(%s)::text", (over,)).fetchone() == (first_id(over),)
    assert len(set(made)) == 100


def test_all_of_a_partition_goes_at_once_when_all_of_it_may(
    sweeps: Sweeps, db: psycopg.Connection, old: datetime, now: datetime
) -> None:
    parent, child = ended_job(db, old), ended_job(db, old, "cancelled")
    db.execute(
        "INSERT INTO signalbox.job_dependencies VALUES (%s, %s, 'success', 'fail', true, now())", (child, parent)
    )
    dead_letter(db, ended_job(db, old, "failed"), "resolved")
    kept = ended_job(db, now)
    assert sweeps.invoke("prune_jobs", now)["items"] == 7
    assert left(db) == {kept}
    assert count(db, "signalbox.job_executions") == 1
    assert count(db, "signalbox.job_dependencies") == 0
    assert all(start > old for table in ("jobs", "job_executions") for start, _ in partitions_of(db, table))


def test_what_is_still_wanted_survives_its_partition(
    sweeps: Sweeps, db: psycopg.Connection, old: datetime, now: datetime
) -> None:
    ended_job(db, old)
    open_letter = ended_job(db, old, "failed")
    dead_letter(db, open_letter)
    waited_for = ended_job(db, old)
    kept = {
        pending_job(db, now + 300 * DAY, id=id_of(old)),
        queued_job(db, now, id=id_of(old)),
        running_job(db, id=id_of(old)),
        ended_job(db, now - DAY, id=id_of(old)),
        blocked_job(db, on=waited_for, id=id_of(old)),
        open_letter,
        waited_for,
    }
    attempts = count(db, "signalbox.job_executions")
    assert (
        sweeps.invoke("prune_jobs", now)["items"] == 4
    )  # the first with its attempt; those of two that ended long ago
    assert left(db) == kept
    assert {place_of(db, job_id) for job_id in kept} == {"default"}
    assert count(db, "signalbox.job_executions") == attempts - 3
    assert len([start for start, _ in partitions_of(db, "jobs") if start < old]) == 0


def test_a_partition_stays_while_too_much_of_it_must(
    sweeps: Sweeps, db: psycopg.Connection, old: datetime, now: datetime
) -> None:
    ended_job(db, old)
    queued_job(db, now, id=id_of(old))
    name = f"jobs_{old - WEEK / 2:%Y%m%d}"
    assert db.execute("SELECT signalbox.drop_jobs(%s, %s, 0)", (name, now - 30 * DAY)).fetchone() == (None,)
    assert count(db, "signalbox.jobs") == 2


def test_a_younger_partition_is_not_dropped_whatever_is_asked_for(db: psycopg.Connection, now: datetime) -> None:
    young = past_partition(db, "jobs", 1)
    ended_job(db, young)
    assert drop(db, young, now) is None
    today = f"jobs_{partitions_of(db, 'jobs')[-1][0]:%Y%m%d}"
    for name in (today, "jobs_default", "jobs_others", "dead_letter_jobs", "job_history_default", "none"):
        assert db.execute("SELECT signalbox.drop_jobs(%s, %s)", (name, now + 999 * DAY)).fetchone() == (None,)
    assert count(db, "signalbox.jobs") == 1


def test_a_look_with_a_snapshot_older_than_the_lock_is_refused(
    db: psycopg.Connection, old: datetime, now: datetime
) -> None:
    db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    with pytest.raises(psycopg.errors.ActiveSqlTransaction, match="READ COMMITTED only"):
        drop(db, old, now)


def test_a_job_redriven_while_its_partition_is_about_to_go_is_kept(
    dsn: str, db: psycopg.Connection, other: psycopg.Connection, old: datetime, now: datetime
) -> None:
    job_id = ended_job(db, old, "failed")
    other.execute(
        "UPDATE signalbox.jobs SET status = 'pending', completed_at = NULL, send_at = now() WHERE id = %s", (job_id,)
    )
    with ThreadPoolExecutor(1) as pool, psycopg.connect(dsn, autocommit=True) as dropper:
        dropped = pool.submit(drop, dropper, old, now)
        wait_until_waiting(db)
        other.commit()
        assert dropped.result() == 0
    assert statuses(db, job_id) == ["pending"]


@pytest.mark.parametrize("act", ["claim", "dispatch"])
def test_who_comes_while_a_partition_goes_finds_its_job_in_the_new_place(
    dsn: str, db: psycopg.Connection, other: psycopg.Connection, old: datetime, now: datetime, act: str
) -> None:
    job_id = queued_job(db, now - DAY, id=id_of(old))
    assert drop(other, old, now) == 0
    claim = Claim(str(uuid4()), "tests")
    acts: dict[str, Callable[[psycopg.Connection], Any]] = {
        "claim": lambda worker: [job.id for job in claim.begin(worker, [job_id])],
        "dispatch": lambda worker: [
            str(row[0])
            for row in worker.execute(
                "SELECT id FROM signalbox.jobs WHERE send_at <= now() LIMIT 10 FOR UPDATE SKIP LOCKED"
            )
        ],
    }
    with ThreadPoolExecutor(1) as pool, psycopg.connect(dsn, autocommit=True) as worker:
        found = pool.submit(acts[act], worker)
        wait_until_waiting(db)
        other.commit()
        assert found.result() == [job_id]
    assert place_of(db, job_id) == "default"


def test_a_lock_that_is_not_to_be_had_is_left_for_another_night(
    sweeps: Sweeps, db: psycopg.Connection, other: psycopg.Connection, now: datetime
) -> None:
    db.execute("ALTER FUNCTION signalbox.drop_jobs SET lock_timeout = '10ms'")
    # Near its end: what is older than a partition's length beyond the retention goes row by row.
    ended_job(db, past_partition(db, "jobs", 6) + 3 * DAY)
    other.execute("SELECT FROM signalbox.jobs")
    assert sweeps.invoke("prune_jobs", now)["status"] == "succeeded"
    assert count(db, "signalbox.jobs") == 1
    other.commit()
    sweeps.invoke("prune_jobs", now + DAY)
    assert count(db, "signalbox.jobs") == 0


def test_attempts_that_ended_lately_stay_with_their_job(db: psycopg.Connection, old: datetime, now: datetime) -> None:
    old_job, gone = ended_job(db, now - DAY, id=id_of(old)), ended_job(db, old)
    execution(db, old, job_id=old_job, attempt_number=2)
    assert drop(db, old, now, "job_executions") == 2
    assert db.execute("SELECT job_id::text, attempt_number FROM signalbox.job_executions").fetchall() == [(old_job, 1)]
    assert left(db) == {old_job, gone}


def test_months_without_partitions_lose_nothing_and_are_made_up_for(
    sweeps: Sweeps, db: psycopg.Connection, now: datetime
) -> None:
    db.execute("SELECT signalbox.drop_partition('jobs', name, '{}') FROM signalbox.partitions WHERE of_table = 'jobs'")
    past_partition(db, "jobs", 9)
    jobs = {
        ended_job(db, now - 20 * DAY),
        queued_job(db, now),
        queued_job(db, now, id=id_of(now - 25 * DAY)),
    }
    assert {place_of(db, job_id) for job_id in jobs} == {"default"}
    sweeps.invoke("prune_jobs", now)
    assert left(db) == jobs
    assert count(db, "signalbox.jobs_default") == 0
    assert partitions_of(db, "jobs")[-1][1] >= now + 13 * DAY


def test_a_stretch_too_big_to_move_stays_where_it_is(db: psycopg.Connection, now: datetime) -> None:
    db.execute("SELECT signalbox.drop_partition('jobs', name, '{}') FROM signalbox.partitions WHERE of_table = 'jobs'")
    db.execute(
        "INSERT INTO signalbox.jobs (id, job_type, lane, send_at, max_attempts, timeout_ms) "
        "SELECT signalbox.new_id(), 'do_nothing', 'normal', now(), 3, 1000 FROM generate_series(1, 10001)"
    )
    db.execute("SELECT signalbox.make_partitions('jobs', 7)")
    assert count(db, "signalbox.jobs_default") == 10_001
    assert partitions_of(db, "jobs")[0][0] > now
    assert place_of(db, queued_job(db, now)) == "default"


def test_making_partitions_twice_makes_them_once_and_of_nothing_else(db: psycopg.Connection) -> None:
    db.execute("SELECT signalbox.make_partitions('jobs', 7)")
    before = partitions_of(db, "jobs")
    assert db.execute("SELECT signalbox.make_partitions('jobs', 7)").fetchone() == (0,)
    for table, days in (("dead_letter_jobs", 7), ("jobs", 0), ("jobs", 1000)):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="no partitions of"):
            db.execute("SELECT signalbox.make_partitions(%s, %s)", (table, days))
    assert partitions_of(db, "jobs") == before


def test_a_partition_is_a_quarter_of_what_is_kept_and_they_are_never_many() -> None:
    for kept, shorter in ((30, 30), (1, 1), (7, 7), (365, 7), (3650, 3650)):
        length = length_of(shorter * DAY, kept * DAY)
        assert length >= DAY
        assert kept * DAY / length <= 13
        assert length <= max(DAY, kept * DAY / 4)
    assert length_of(30 * DAY, 30 * DAY) == WEEK


def test_a_key_is_free_again_once_its_job_went_with_its_partition(
    sweeps: Sweeps, db: psycopg.Connection, old: datetime, now: datetime
) -> None:
    new = NewJob(job_type="do_nothing", id=id_of(old), idempotency_key="k")
    [first] = submit(db, CATALOGUE, [new], now)
    db.execute(
        "UPDATE signalbox.jobs SET status = 'cancelled', send_at = NULL, completed_at = %s, updated_at = %s", (old, old)
    )
    assert drop(db, old, now) == 1
    again = NewJob(job_type="do_nothing", idempotency_key="k")
    second, third = submit(db, CATALOGUE, [again, again], now)
    assert (second.created, third.created, second.id == third.id) == (True, False, True)
    assert second.id != first.id
    sweeps.invoke("prune_jobs", now)
    assert submit(db, CATALOGUE, [again], now)[0].id == second.id


def test_keys_go_with_their_jobs_and_not_from_under_others(
    sweeps: Sweeps, db: psycopg.Connection, old: datetime, now: datetime
) -> None:
    keys = {"dropped": id_of(old), "deleted": id_of(now - 60 * DAY), "kept": new_ids(1)[0]}
    submit(
        db, CATALOGUE, [NewJob(job_type="do_nothing", id=id_, idempotency_key=key) for key, id_ in keys.items()], now
    )
    db.execute(
        "UPDATE signalbox.jobs SET status = 'cancelled', send_at = NULL, completed_at = %s, updated_at = %s "
        "WHERE idempotency_key <> 'kept'",
        (old, old),
    )
    sweeps.invoke("prune_jobs", now)
    assert db.execute("SELECT idempotency_key FROM signalbox.job_keys").fetchall() == [("kept",)]


def test_two_submits_of_a_freed_key_at_once_make_one_job(
    dsn: str, db: psycopg.Connection, other: psycopg.Connection, now: datetime
) -> None:
    db.execute("INSERT INTO signalbox.job_keys VALUES ('do_nothing', 'k', %s)", (str(uuid4()),))
    new = NewJob(job_type="do_nothing", idempotency_key="k")
    [first] = submit(other, CATALOGUE, [new], now)
    with ThreadPoolExecutor(1) as pool, psycopg.connect(dsn, autocommit=True) as third:
        second = pool.submit(submit, third, CATALOGUE, [new], now)
        wait_until_waiting(db)
        other.commit()
        assert second.result()[0].id == first.id
    assert count(db, "signalbox.jobs") == 1


@pytest.fixture
def writer(db: psycopg.Connection) -> Iterator[str]:
    """A role that owns nothing and may call what the archiver calls."""
    role = f"writer_of_{db.info.dbname}"
    db.execute(f"CREATE ROLE {role}".encode())
    db.execute(f"GRANT USAGE ON SCHEMA signalbox TO {role}".encode())
    for function in ("make_partitions", "drop_jobs"):
        db.execute(f"GRANT EXECUTE ON FUNCTION signalbox.{function} TO {role}".encode())
    yield role
    db.execute("RESET ROLE")
    db.execute(f"DROP OWNED BY {role}".encode())
    db.execute(f"DROP ROLE {role}".encode())


def test_a_role_that_owns_no_table_drops_by_the_functions_alone(
    db: psycopg.Connection, writer: str, old: datetime, now: datetime
) -> None:
    ended_job(db, old)
    db.execute("SELECT signalbox.drop_partition('jobs', max(name), '{}') FROM signalbox.partitions")
    db.execute(f"SET ROLE {writer}".encode())
    name = f"jobs_{old - WEEK / 2:%Y%m%d}"
    for forbidden in (
        f"DROP TABLE signalbox.{name}",
        f"SELECT signalbox.drop_partition('jobs', '{name}', '{{}}')",
        f"SELECT signalbox.drop_executions('{name}', now())",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute(forbidden.encode())
    assert drop(db, old, now) == 1
    assert db.execute("SELECT signalbox.make_partitions('jobs', 7) > 0").fetchone() == (True,)
