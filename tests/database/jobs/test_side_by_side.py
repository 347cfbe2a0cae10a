"""Jobs that share a worker have their own time, connection and lease; none pays for a neighbour."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from signalbox.packs.job_type import JobType
from signalbox.packs.outcome import Completed, Transient
from signalbox.submit.new_job import NewJob
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.stage import Stage
from signalbox.worker import core, driver, outbox
from tests.support.jobs import obeying
from tests.support.jobs.act import ACTS

MODULE = "tests.support.jobs.act"
TYPES = (
    JobType("act", "waits", MODULE, timeout=timedelta(seconds=20)),
    JobType("act_async", "waits on the loop", MODULE, timeout=timedelta(seconds=20)),
    JobType("act_alone", "computes", MODULE, timeout=timedelta(seconds=20), side_by_side=1),
    JobType("act_wrongly", "writes, on the loop", MODULE, transactional=True),
)


@pytest.fixture
def stage(stage: Stage, notes: None) -> Stage:
    return stage.with_job_types(*TYPES)


def submit(stage: Stage, act: Callable[[Any], Any], job_type: str = "act", **fields: Any) -> str:
    ACTS[act.__name__ + str(id(act))] = act
    return stage.submit(job_type, payload={"name": act.__name__ + str(id(act))}, **fields)


class Crowd:
    """Count how many are in it, and the most so far."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()

    @contextmanager
    def join(self) -> Iterator[None]:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            yield
        finally:
            with self._lock:
                self.now -= 1


# ---- how many at once


def test_ten_plain_jobs_wait_at_once(stage: Stage) -> None:
    gate = threading.Barrier(10, timeout=20)

    def meet(_: Any) -> None:
        gate.wait()

    ids = [submit(stage, meet) for _ in range(20)]
    stage.work(*ids)
    assert stage.statuses(*ids) == ["completed"] * 20


def test_hundred_async_jobs_wait_at_once(stage: Stage) -> None:
    present: list[int] = []

    async def meet(_: Any) -> None:
        present.append(1)
        while len(present) < 100:
            await asyncio.sleep(0.01)

    ids = [submit(stage, meet, "act_async") for _ in range(100)]
    stage.work(*ids)
    assert stage.statuses(*ids) == ["completed"] * 100


def test_job_that_computes_has_the_main_thread_beside_others(stage: Stage) -> None:
    crowd, others, threads = Crowd(), threading.Barrier(3, timeout=20), set()

    def compute(_: Any) -> None:
        with crowd.join():
            threads.add(threading.current_thread())
            if len(threads) == 1 and not others.broken:
                others.wait()
                others.abort()

    def wait(_: Any) -> None:
        others.wait()

    alone = [submit(stage, compute, "act_alone") for _ in range(3)]
    stage.work(*alone, *(submit(stage, wait) for _ in range(2)))
    assert stage.statuses(*alone)[0] == "completed"
    assert (crowd.most, threads) == (1, {threading.main_thread()})


def test_waiting_jobs_stay_queued_until_there_is_room(stage: Stage) -> None:
    """A worker that dies then spends none of their attempts."""
    seen: list[list[tuple[Any, ...]]] = []
    gate = threading.Barrier(10, timeout=20)

    def look(_: Any) -> None:
        if gate.wait() == 0:
            statement = "SELECT status, attempts, count(*) FROM signalbox.jobs GROUP BY 1, 2 ORDER BY 1"
            seen.append(stage.db.execute(statement).fetchall())
        gate.wait()

    ids = [submit(stage, look, max_attempts=1) for _ in range(20)]
    stage.work(*ids)
    assert seen[0] == [("queued", 0, 10), ("running", 1, 10)]


def test_slots_bound_all_types_together(stage: Stage) -> None:
    crowd = Crowd()

    def wait(_: Any) -> None:
        with crowd.join():
            time.sleep(0.05)

    async def wait_async(_: Any) -> None:
        with crowd.join():
            await asyncio.sleep(0.05)

    object.__setattr__(stage.app.resources.settings, "worker_slots", 3)
    ids = [submit(stage, act, kind) for _ in range(5) for act, kind in ((wait, "act"), (wait_async, "act_async"))]
    stage.work(*ids)
    assert stage.statuses(*ids) == ["completed"] * 10
    assert crowd.most == 3


# ---- time-outs


def spin(_: Any) -> None:
    while True:
        time.sleep(0.01)


def return_at_once(_: Any) -> None:
    return None


async def spin_async(_: Any) -> None:
    while True:
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(("act", "kind"), [(spin, "act"), (spin, "act_alone"), (spin_async, "act_async")])
def test_time_out_ends_one_attempt_alone(stage: Stage, act: Callable[[Any], Any], kind: str) -> None:
    late = submit(stage, act, kind, timeout=timedelta(milliseconds=200), max_attempts=1)
    beside = [stage.submit(obeying("complete")) for _ in range(3)]
    stage.work(late, *beside)
    assert stage.dead_letter(late)["failure_reason"] == "timeout"
    assert "longer than the 0.2 s" in stage.job(late)["error_details"]["message"]
    assert stage.statuses(*beside) == ["completed"] * 3


def test_attempt_broken_off_for_want_of_time_is_not_charged(stage: Stage) -> None:
    first = submit(stage, return_at_once, timeout=timedelta(seconds=1))
    cut = submit(stage, spin, timeout=timedelta(seconds=1), max_attempts=1)
    stage.work(first, cut, seconds=10.7)
    job, [attempt] = stage.job(cut), stage.attempts(cut)
    assert (job["status"], job["attempts"], attempt["status"]) == ("pending", 0, "released")


def test_first_job_of_an_invocation_is_charged_when_it_is_cut(stage: Stage) -> None:
    """No other invocation has more time for it: it would be retried for ever."""
    cut = submit(stage, spin, timeout=timedelta(seconds=20), max_attempts=1)
    stage.work(cut, seconds=10.3)
    assert stage.job(cut)["status"] == "failed"


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the exit codes that the process would have had."""
    codes: list[int] = []
    monkeypatch.setattr(driver, "exit_process", codes.append)
    monkeypatch.setattr(driver, "GIVEN_UP_AFTER_SECONDS", 0.2)
    return codes


def test_job_that_hangs_in_c_costs_its_own_attempt(
    stage: Stage, ended: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    hang = threading.Event()

    def sleep_in_c(_: Any) -> None:
        hang.wait()

    def wait(_: Any) -> None:
        time.sleep(1)

    bad = submit(stage, sleep_in_c, timeout=timedelta(milliseconds=100), max_attempts=1)
    beside = [submit(stage, wait) for _ in range(3)]
    left = [submit(stage, wait, timeout=timedelta(seconds=4)) for _ in range(10)]
    stage.work(bad, *beside, *left)
    hang.set()
    assert ended == [1]
    assert stage.dead_letter(bad)["failure_reason"] == "timeout"
    assert stage.statuses(*beside) == ["completed"] * 3
    assert set(stage.statuses(*left)) == {"completed", "queued"}


def test_job_that_blocks_the_loop_is_named_and_charged_alone(
    stage: Stage, ended: list[int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(driver, "BLOCKED_SECONDS", 0.05)
    hang, waiting = threading.Event(), threading.Event()

    async def block(_: Any) -> None:
        await asyncio.to_thread(waiting.wait)
        hang.wait(20)

    async def wait(_: Any) -> None:
        waiting.set()
        await asyncio.sleep(5)

    bad = submit(stage, block, "act_async", timeout=timedelta(milliseconds=300), max_attempts=1)
    beside = submit(stage, wait, "act_async", max_attempts=1)
    stage.work(bad, beside)
    hang.set()
    assert ended == [1]
    assert "job.blocked_event_loop" in caplog.messages
    assert (stage.job(bad)["status"], stage.job(beside)["status"]) == ("failed", "pending")
    assert stage.job(beside)["attempts"] == 0


# ---- leases, progress, cancelling


def test_leases_are_renewed_and_each_job_says_how_far_it_is(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "BEAT_SECONDS", 0.05)
    seen: dict[str, Any] = {}

    def report(context: Any) -> Completed:
        first = stage.job(context.job.id)["lease_expires_at"]
        context.report(30 if context.payload.name.endswith("0") else 60)
        while (row := stage.job(context.job.id))["heartbeat_at"] is None or not row["progress_percent"]:
            time.sleep(0.01)
        seen[context.job.id] = (row["progress_percent"], row["lease_expires_at"] > first, row["health_status"])
        return Completed()

    ACTS["report-0"] = ACTS["report-1"] = report
    ids = [stage.submit("act", payload={"name": f"report-{n}"}) for n in range(2)]
    stage.work(*ids)
    assert [seen[id_] for id_ in ids] == [(30, True, "HEALTHY"), (60, True, "HEALTHY")]


def test_only_the_job_that_is_to_be_cancelled_hears_of_it(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "BEAT_SECONDS", 0.05)
    wanted = threading.Event()

    def wait(context: Any) -> None:
        stage.db.execute("UPDATE signalbox.jobs SET cancel_requested_at = now() WHERE id = %s", (context.key,))
        for _ in range(2000):
            time.sleep(0.01)
            try:
                context.check_cancelled()
            except BaseException:
                wanted.set()
                raise

    def beside(context: Any) -> None:
        assert wanted.wait(20)
        context.check_cancelled()

    ids = [submit(stage, wait), submit(stage, beside)]
    stage.work(*ids)
    assert stage.statuses(*ids) == ["cancelled", "completed"]


def test_jobs_whose_last_worker_died_run_alone(stage: Stage) -> None:
    crowd, companies = Crowd(), dict[str, int]()

    def wait(context: Any) -> None:
        with crowd.join():
            time.sleep(0.05)
            companies[context.job.id] = crowd.now

    ids = [submit(stage, wait) for _ in range(6)]
    lost = ids[:2]
    stage.db.execute(
        'UPDATE signalbox.jobs SET error_details = \'{"type": "WorkerLost"}\' WHERE id = ANY (%s)', (lost,)
    )
    stage.work(*ids)
    assert stage.statuses(*ids) == ["completed"] * 6
    assert [companies[id_] for id_ in lost] == [1, 1]
    assert crowd.most > 1


# ---- connections and locks


def test_many_jobs_share_few_connections(stage: Stage) -> None:
    gate = threading.Barrier(10, timeout=20)

    def note(context: Any) -> None:
        gate.wait()
        with context.db.transaction():
            context.db.execute("INSERT INTO notes (job_id) VALUES (%s)", (context.job.id,))
            context.db.execute("SELECT pg_sleep(0.02)")
        gate.wait()

    ids = [submit(stage, note) for _ in range(10)]
    stage.work(*ids)
    assert stage.db.execute("SELECT count(*) FROM notes").fetchone() == (10,)
    opened = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'signalbox'"
    )
    [[number]] = stage.db.execute(opened).fetchall()
    assert number <= 1 + stage.app.resources.settings.worker_connections


def test_async_jobs_use_the_database(stage: Stage) -> None:
    async def note(context: Any) -> Completed:
        async with context.db.transaction():
            await context.db.execute("INSERT INTO notes (job_id) VALUES (%s)", (context.job.id,))
        cursor = await context.db.execute("SELECT count(*) FROM notes")
        [child] = await context.submit([NewJob(job_type="do_nothing")])
        return Completed({"seen": (await cursor.fetchone())[0] > 0, "child": child.id})

    ids = [submit(stage, note, "act_async") for _ in range(12)]
    stage.work(*ids)
    assert stage.statuses(*ids) == ["completed"] * 12
    assert stage.db.execute("SELECT count(*) FROM notes").fetchone() == (12,)
    child = stage.job(stage.job(ids[0])["result"]["child"])
    assert (str(child["parent_job_id"]), child["status"]) == (ids[0], "queued")


def test_statements_of_one_async_job_run_at_once(stage: Stage) -> None:
    async def gather(context: Any) -> Completed:
        cursors = await asyncio.gather(*(context.db.execute("SELECT pg_sleep(0.05), %s::int", (n,)) for n in range(8)))
        return Completed([(await cursor.fetchone())[1] for cursor in cursors])

    job_id = submit(stage, gather, "act_async")
    stage.work(job_id)
    assert stage.job(job_id)["result"] == list(range(8))


def test_threads_of_one_job_have_a_connection_each(stage: Stage) -> None:
    def fan_out(context: Any) -> Completed:
        def ask(number: int) -> int:
            with context.db.transaction():
                return int(context.db.execute("SELECT %s::int FROM pg_sleep(0.05)", (number,)).fetchone()[0])

        with ThreadPoolExecutor(8) as threads:
            return Completed(list(threads.map(ask, range(8))))

    job_id = submit(stage, fan_out)
    stage.work(job_id)
    assert stage.job(job_id)["result"] == list(range(8))


def test_error_names_what_a_borrowed_connection_cannot_do(stage: Stage) -> None:
    def commit(context: Any) -> None:
        context.db.commit()

    def turn_autocommit_off(context: Any) -> None:
        context.db.autocommit = False

    ids = [submit(stage, act, max_attempts=1) for act in (commit, turn_autocommit_off)]
    stage.work(*ids)
    for job_id in ids:
        assert "with context.db.connection() as db" in stage.job(job_id)["error_details"]["message"]


def test_async_job_after_a_restart_of_the_database_has_a_new_connection(stage: Stage) -> None:
    async def ask(context: Any) -> None:
        await context.db.execute("SELECT 1")

    first, second = submit(stage, ask, "act_async"), submit(stage, ask, "act_async", max_attempts=1)
    stage.work(first)
    stage.db.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE application_name = 'signalbox' AND datname = current_database()"
    )
    stage.work(second)
    assert stage.statuses(first, second) == ["completed"] * 2


def test_async_job_can_not_be_transactional(stage: Stage) -> None:
    job_id = submit(stage, spin_async, "act_wrongly")
    stage.work(job_id)
    assert "its function is `def`, not `async def`" in stage.dead_letter(job_id)["final_error_message"]


def test_locked_row_keeps_no_other_job_from_its_end(stage: Stage, dsn: str) -> None:
    with psycopg.connect(dsn) as operator:

        def lock(context: Any) -> None:
            operator.execute("SELECT FROM signalbox.jobs WHERE id = %s FOR UPDATE", (context.key,))
            threading.Thread(target=release).start()

        def release() -> None:
            while stage.job(beside)["status"] != "completed":
                time.sleep(0.02)
            seen.append(stage.job(held)["status"])
            operator.rollback()

        seen: list[str] = []
        held, beside = submit(stage, lock), stage.submit(obeying("complete"))
        stage.work(held, beside)
    assert seen == ["running"]
    assert stage.statuses(held, beside) == ["completed", "completed"]


def test_locked_row_keeps_no_other_job_from_its_begin(stage: Stage, dsn: str, lanes: AwsStandIn) -> None:
    locked, beside = stage.submit(obeying("complete")), stage.submit(obeying("complete"))
    with psycopg.connect(dsn) as operator:
        operator.execute("SELECT FROM signalbox.jobs WHERE id = %s FOR UPDATE", (locked,))
        stage.work(locked, beside)
    assert stage.statuses(locked, beside) == ["queued", "completed"]
    assert [message["job_id"] for message in lanes.take()] == [locked]


# ---- taking up


def let_wait(stage: Stage) -> None:
    """Make all queued jobs late, as if their messages had not come."""
    stage.db.execute("UPDATE signalbox.jobs SET queued_at = now() - interval '10 s' WHERE status = 'queued'")


def test_worker_with_room_takes_up_late_jobs_of_its_lane(stage: Stage) -> None:
    named, *others = [stage.submit(obeying("complete")) for _ in range(30)]
    elsewhere = stage.submit(obeying("complete", priority=1))
    let_wait(stage)
    fresh = stage.submit(obeying("complete"))
    stage.work(named, lane="normal")
    assert stage.statuses(named, *others) == ["completed"] * 30
    assert stage.statuses(elsewhere, fresh) == ["queued", "queued"]


def test_taken_up_jobs_go_by_priority_and_tenants_in_turn(stage: Stage) -> None:
    begun: list[str] = []

    def note(context: Any) -> None:
        begun.append(f"{context.job.priority} {context.job.tenant}")

    named = submit(stage, note, "act_alone", tenant="named")
    many = [submit(stage, note, "act_alone", tenant="many") for _ in range(3)]
    few = submit(stage, note, "act_alone", tenant="few")
    urgent = submit(stage, note, "act_alone", tenant="many", priority=4)
    let_wait(stage)
    stage.work(named, lane="normal")
    assert stage.statuses(*many, few, urgent) == ["completed"] * 5
    assert begun == ["5 named", "4 many", "5 many", "5 few", "5 many", "5 many"]


def test_retries_of_a_second_are_sent_in_one_call(
    stage: Stage, lanes: AwsStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "PUBLISH_EVERY_SECONDS", 60)

    def fail(_: Any) -> None:
        raise Transient("not now")

    def fail_later(_: Any) -> None:
        while stage.status(first) != "pending":
            pass
        raise Transient("not now")

    first = submit(stage, fail)
    stage.work(first, submit(stage, fail_later))
    assert (len(lanes.take()), lanes.calls) == (2, 1)


def test_taken_up_jobs_without_time_left_are_not_sent_again(stage: Stage, lanes: AwsStandIn) -> None:
    """Their own messages are on their way."""
    named = submit(stage, return_at_once, timeout=timedelta(seconds=1))
    other = submit(stage, return_at_once, timeout=timedelta(seconds=20))
    let_wait(stage)
    stage.work(named, lane="normal", seconds=12)
    assert stage.statuses(named, other) == ["completed", "queued"]
    assert lanes.take() == []
