"""A submit takes all or nothing in the caller's transaction, and says clearly what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier, Thread
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.rows import class_row, dict_row, namedtuple_row, scalar_row

from signalbox.engine_pack import ENGINE
from signalbox.errors import JobRefused, JobTypeUnknown
from signalbox.jobs.dependency import Dependency
from signalbox.packs.registries import JobTypeRegistry
from signalbox.submit.insert import SQL, submit
from signalbox.submit.new_job import NewJob, Submitted
from signalbox.testing.rows import count
from tests.support.at_once import at_once
from tests.support.jobs import REGISTRY
from tests.support.lock_waits import wait_until_blocked

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
JOBS = "signalbox.jobs"


@pytest.fixture
def others(dsn: str) -> Iterator[psycopg.Connection]:
    """Open a second connection."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


def one(db: psycopg.Connection, **fields: Any) -> Submitted:
    return submit(db, REGISTRY, [NewJob(**({"job_type": "do_nothing"} | fields))], NOW)[0]


def column(db: psycopg.Connection, job_id: str, name: str) -> Any:
    row = db.execute("SELECT to_jsonb(j) -> %s FROM signalbox.jobs AS j WHERE id = %s", (name, job_id)).fetchone()
    assert row is not None
    return row[0]


def test_a_job_that_is_due_is_queued_and_one_that_waits_is_pending(db: psycopg.Connection) -> None:
    due = one(db)
    later = one(db, delay=timedelta(hours=1))
    past = one(db, at=NOW - timedelta(seconds=1))
    assert [submitted.status for submitted in (due, later, past)] == ["queued", "pending", "queued"]
    assert column(db, later.id, "scheduled_for") == "2026-03-10T13:00:00+00:00"


def test_everything_that_is_said_of_a_job_is_stored(db: psycopg.Connection) -> None:
    parent = one(db).id
    job = one(
        db, payload={"number": 7}, priority=2, tenant="acme", cap_key="mail", group="g", parent_id=parent,
        max_attempts=9, timeout=timedelta(seconds=12), name="a name", correlation_id="c-1", tags=["a", 'b"\\,{c'],
        metadata={"x": [1]}, created_by="warden", idempotency_key="k",
    )  # fmt: skip
    expected = {
        "payload": {"number": 7}, "priority": 2, "lane": "high", "tenant": "acme", "cap_key": "mail", "job_group": "g",
        "parent_job_id": parent, "max_attempts": 9, "timeout_ms": 12_000, "job_name": "a name",
        "correlation_id": "c-1", "tags": ["a", 'b"\\,{c'], "metadata": {"x": [1]}, "created_by": "warden",
        "job_category": "standard", "idempotency_key": "k",
    }  # fmt: skip
    assert {name: column(db, job.id, name) for name in expected} == expected


@pytest.mark.parametrize(("priority", "lane"), [(1, "high"), (3, "high"), (4, "normal"), (7, "normal"), (8, "low")])
def test_the_lane_follows_the_priority(db: psycopg.Connection, priority: int, lane: str) -> None:
    assert one(db, priority=priority).lane == lane


def test_a_second_submit_with_the_same_key_gives_the_first_job(db: psycopg.Connection) -> None:
    first = one(db, idempotency_key="order-7")
    second = one(db, idempotency_key="order-7", payload={"number": 9})
    assert (second.id, second.created, first.created) == (first.id, False, True)
    assert one(db, job_type="note_job", idempotency_key="order-7").id != first.id
    assert count(db, JOBS) == 2


def test_one_key_twice_in_one_submit_is_one_job(db: psycopg.Connection) -> None:
    new = NewJob(job_type="do_nothing", idempotency_key="same")
    both = submit(db, REGISTRY, [new, new], NOW)
    assert both[0].id == both[1].id
    assert [submitted.created for submitted in both] == [True, False]


def test_two_submits_of_one_key_at_once_make_one_job(dsn: str, db: psycopg.Connection) -> None:
    gate, ids = Barrier(2, timeout=30), list[str]()

    def run() -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            gate.wait()
            ids.append(one(connection, idempotency_key="race").id)

    threads = [Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(ids)) == 1
    assert count(db, JOBS) == 1


@pytest.mark.parametrize("commits", [True, False])
def test_a_submit_waits_for_one_with_its_key_that_is_still_open(
    dsn: str, db: psycopg.Connection, commits: bool
) -> None:
    with ThreadPoolExecutor(1) as pool, psycopg.connect(dsn) as open_one, psycopg.connect(dsn, autocommit=True) as late:
        first = one(open_one, idempotency_key="race")
        second = pool.submit(one, late, idempotency_key="race")
        wait_until_blocked(db)
        open_one.commit() if commits else open_one.rollback()
        found = second.result()
    assert (found.created, found.id == first.id) == (not commits, commits)
    assert count(db, JOBS) == 1


def test_first_submit_of_a_capped_type_keeps_no_other_waiting(
    db: psycopg.Connection, others: psycopg.Connection
) -> None:
    payload = {"url": "https://receiver.example/hook", "event_type": "paid", "event": {}, "secret": "key"}
    job = NewJob(job_type="deliver_webhook", payload=payload)
    job_types = JobTypeRegistry(ENGINE.job_types)
    others.execute("SET lock_timeout = '2s'")
    with db.transaction():
        submit(db, job_types, [job], NOW)
        submit(others, job_types, [job], NOW)
    assert count(db, JOBS) == 2
    assert count(db, "signalbox.job_caps") == 1


def test_submits_of_the_same_keys_in_another_order_never_deadlock(dsn: str, db: psycopg.Connection) -> None:
    both = [NewJob(job_type="do_nothing", idempotency_key=key) for key in ("b", "a")]
    with ThreadPoolExecutor(1) as pool, psycopg.connect(dsn) as open_one, psycopg.connect(dsn, autocommit=True) as late:
        first = one(open_one, idempotency_key="a")
        found = pool.submit(submit, late, REGISTRY, both, NOW)
        wait_until_blocked(db)
        second = one(open_one, idempotency_key="b")
        open_one.commit()
        assert [job.id for job in found.result()] == [second.id, first.id]


def keyed(*keys: Any) -> list[NewJob]:
    return [NewJob(job_type="do_nothing", tenant="a\\b\tc", idempotency_key=f"k-{key}") for key in keys]


def test_many_jobs_with_keys_are_each_stored_once_in_the_order_given(db: psycopg.Connection) -> None:
    old = submit(db, REGISTRY, keyed(*range(100)), NOW)
    found = submit(db, REGISTRY, keyed(*range(1499, -1, -1), 7, 1400), NOW)
    assert [job.created for job in found] == [True] * 1400 + [False] * 102
    assert [job.id for job in found[1400:1500]] == [job.id for job in reversed(old)]
    assert (found[1500].id, found[1501].id, found[0].tenant) == (old[7].id, found[99].id, "a\\b\tc")
    assert column(db, found[0].id, "idempotency_key") == "k-1499"
    assert column(db, found[0].id, "tenant") == "a\\b\tc"
    assert (count(db, JOBS), count(db, "signalbox.job_rows")) == (1500, 0)


def test_many_jobs_with_keys_of_which_one_is_refused_leave_nothing(db: psycopg.Connection) -> None:
    jobs = [*keyed(*range(1200)), NewJob(job_type="do_nothing", tenant="nul\0", idempotency_key="k")]
    with pytest.raises(JobRefused, match="job 1201 of 1201"):
        submit(db, REGISTRY, jobs, NOW)
    assert (count(db, JOBS), count(db, "signalbox.job_rows")) == (0, 0)


def test_many_submits_of_the_same_keys_at_once_make_each_job_once(dsn: str, db: psycopg.Connection) -> None:
    keys = list(range(1200))
    orders = keyed(*keys), keyed(*reversed(keys)), keyed(*keys[600:], *keys[:600])
    found = at_once(*[lambda on, jobs=jobs: submit(on, REGISTRY, jobs, NOW) for jobs in orders], dsn=dsn)
    assert sum(job.created for submitted in found for job in submitted) == 1200
    assert count(db, JOBS) == 1200


def test_a_key_whose_job_is_pruned_at_that_very_moment_is_free(dsn: str, others: psycopg.Connection) -> None:
    class PrunedInBetween(psycopg.Cursor[Any]):
        def execute(self, query: Any, *args: Any, **kwargs: Any) -> Any:
            if query == SQL["find_first"]:
                others.execute("DELETE FROM signalbox.jobs WHERE id = %s", (first.id,))
            return super().execute(query, *args, **kwargs)

    first = one(others, idempotency_key="k")
    with psycopg.connect(dsn, autocommit=True, cursor_factory=PrunedInBetween) as connection:
        second = one(connection, idempotency_key="k")
    assert (second.created, second.id == first.id) == (True, False)
    assert one(others, idempotency_key="k").id == second.id


def test_a_key_is_looked_up_by_its_index(db: psycopg.Connection) -> None:
    db.execute(
        "INSERT INTO signalbox.jobs (job_type, lane, max_attempts, timeout_ms, send_at, idempotency_key)"
        " SELECT 'do_nothing', 'normal', 3, 1000, now(), n::text FROM generate_series(1, 20000) AS n"
    )
    db.execute("VACUUM ANALYZE signalbox.jobs")
    rows = db.execute(f"EXPLAIN {SQL['find_first']}".encode(), {"rows": "[]"}).fetchall()
    assert "job_submitted_once" in "".join(row[0] for row in rows)


def test_a_job_comes_and_goes_with_the_callers_transaction(db: psycopg.Connection, others: psycopg.Connection) -> None:
    with db.transaction(force_rollback=True):
        one(db)
        submit(db, REGISTRY, [NewJob(job_type="do_nothing")] * 3, NOW)
        assert (count(db, JOBS), count(others, JOBS)) == (4, 0)
    assert count(db, JOBS) == 0


@pytest.mark.parametrize("number", [2, 199, 200, 2500])
def test_many_at_once_are_stored_in_order(db: psycopg.Connection, number: int) -> None:
    jobs = [
        NewJob(job_type="note_job", payload={"subject": f"s-{n}\t\\ \n'ü\""}, tags=["t\\", 'q"'], tenant=f"t\\{n}")
        for n in range(number)
    ]
    submitted = submit(db, REGISTRY, jobs, NOW)
    rows = db.execute("SELECT id::text, subject_id, tenant, tags FROM signalbox.jobs ORDER BY id").fetchall()
    expected = [
        (done.id, job.payload["subject"], job.tenant, ["t\\", 'q"']) for done, job in zip(submitted, jobs, strict=True)
    ]
    assert rows == expected


def test_ids_ascend(db: psycopg.Connection) -> None:
    ids = [submitted.id for submitted in submit(db, REGISTRY, [NewJob(job_type="do_nothing")] * 5000, NOW)]
    assert ids == sorted(ids)
    assert len(set(ids)) == 5000


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"payload": {"nummer": 1}}, "field 'nummer' is not known; did you mean 'number'?"),
        ({"payload": {"number": "many"}}, "field 'number'"),
        ({"lane": "heavy"}, "may not run in lane 'heavy'; allowed are high, low, normal"),
        ({"priority": 0}, "priority 0 is not between 1 (first) and 10"),
        ({"priority": 11}, "priority 11"),
        ({"timeout": timedelta(seconds=331)}, "331 s is not above zero and within the 330 s of lane 'normal'"),
        ({"timeout": timedelta(0)}, "is not above zero"),
        ({"max_attempts": 0}, "max_attempts 0 is not between 1 and 100"),
        ({"tenant": "a\0b"}, "NUL"),
        ({"tags": ["a\0b"]}, "NUL"),
        ({"at": datetime(2026, 3, 10)}, "time zone"),  # noqa: DTZ001
        ({"at": NOW, "delay": timedelta(seconds=1)}, "and not both"),
        ({"depends_on": [Dependency("nothing")]}, "takes the ids of jobs"),
    ],
)
def test_what_can_not_be_taken_is_refused_and_nothing_is_stored(
    db: psycopg.Connection, fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(JobRefused) as refusal:
        one(db, **fields)
    assert said in str(refusal.value)
    assert count(db, JOBS) == 0


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({"subject": "a\0b"}, "NUL"),
        ({"subject": "x" * 200_001}, "put the data into S3"),
        ({"subject": "ü" * 100_001}, "S3"),
    ],
)
def test_a_payload_that_can_not_be_stored_is_refused(db: psycopg.Connection, payload: Any, said: str) -> None:
    with pytest.raises(JobRefused, match=said):
        one(db, job_type="note_job", payload=payload)


def test_an_unknown_type_is_refused_with_the_nearest_name(db: psycopg.Connection) -> None:
    with pytest.raises(JobTypeUnknown, match="did you mean 'do_nothing'"):
        one(db, job_type="do_nothin")


def test_one_bad_job_among_many_is_named_and_none_is_stored(db: psycopg.Connection) -> None:
    jobs = [NewJob(job_type="do_nothing", payload={"number": "x" if n == 41 else n}) for n in range(300)]
    with pytest.raises(JobRefused, match=r"job 42 of 300: .* nothing was stored"):
        submit(db, REGISTRY, jobs, NOW)
    assert count(db, JOBS) == 0


# ---- what jobs wait for


def test_a_job_waits_for_others_and_knows_how_many(db: psycopg.Connection) -> None:
    first, second = one(db).id, one(db).id
    job = one(db, depends_on=[Dependency(first), Dependency(second, "completion")])
    assert (job.status, column(db, job.id, "unmet_dependencies"), column(db, job.id, "send_at")) == ("pending", 2, None)


def test_jobs_of_one_submit_may_depend_on_each_other_without_cycles(db: psycopg.Connection) -> None:
    ids = [str(uuid4()) for _ in range(3)]
    chain = [
        NewJob(job_type="do_nothing", id=id_, depends_on=[Dependency(before)] if before else [])
        for id_, before in zip(ids, [None, *ids], strict=False)
    ]
    assert [submitted.status for submitted in submit(db, REGISTRY, chain, NOW)] == ["queued", "pending", "pending"]
    ring = [NewJob(job_type="do_nothing", id=str(uuid4())) for _ in range(2)]
    ring = [
        NewJob(job_type="do_nothing", id=job.id, depends_on=[Dependency(other.id or "")])
        for job, other in zip(ring, reversed(ring), strict=True)
    ]
    with pytest.raises(JobRefused, match="in a circle"):
        submit(db, REGISTRY, ring, NOW)
    assert count(db, JOBS) == 3


def test_a_dependency_on_itself_or_on_nothing_is_refused(db: psycopg.Connection) -> None:
    own = str(uuid4())
    with pytest.raises(JobRefused, match="depend on itself"):
        one(db, id=own, depends_on=[Dependency(own)])
    with pytest.raises(JobRefused, match="which does not exist"):
        one(db, depends_on=[Dependency(own)])
    assert count(db, JOBS) == 0


@pytest.mark.parametrize(
    "rows", [dict_row, namedtuple_row, scalar_row, class_row(dict)], ids=lambda rows: rows.__name__
)
def test_a_connection_may_have_any_row_factory(dsn: str, db: psycopg.Connection, rows: Any) -> None:
    with psycopg.connect(dsn, autocommit=True, row_factory=rows) as connection:
        parent = one(connection, idempotency_key="order-7", group="g")
        assert one(connection, idempotency_key="order-7").id == parent.id
        child = one(connection, depends_on=[Dependency(parent.id)])
        many = submit(connection, REGISTRY, [NewJob("do_nothing")] * 300, NOW)
    assert child.status == "pending"
    assert len({job.id for job in many}) == 300
    assert count(db, JOBS) == 302


def test_a_job_is_named_by_its_type_and_payload() -> None:
    assert NewJob("do_nothing", {"number": 1}) == NewJob(job_type="do_nothing", payload={"number": 1})
