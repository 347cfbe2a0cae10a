"""A fault in a shared worker charges only the culprit; its neighbours complete in their only attempt."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any

import pytest

from signalbox.packs.job_type import JobType
from signalbox.postgres import connection
from signalbox.testing.stage import Stage
from signalbox.worker import attempt, driver
from tests.support.jobs.act import ACTS
from tests.support.jobs.faults import DEEDS, HANG_SECONDS, KINDS, note
from tests.support.lost_session import lose_session

MODULE, TIMEOUT = "tests.support.jobs.act", timedelta(seconds=20)
TYPES = (
    JobType("act", "waits", MODULE, timeout=TIMEOUT),
    JobType("act_async", "waits on the loop", MODULE, timeout=TIMEOUT),
    JobType("act_within", "writes with its end", MODULE, timeout=TIMEOUT, transactional=True),
    JobType("exits", "ends its process when it is imported", "tests.support.jobs.exits"),
    JobType("act_alone", "the same in the main thread", MODULE, timeout=TIMEOUT, transactional=True, side_by_side=1),
)


@pytest.fixture
def stage(stage: Stage, notes: None) -> Stage:
    stage.db.execute("ALTER TABLE notes ADD PRIMARY KEY (job_id)")
    return stage.with_job_types(*TYPES)


def submit(stage: Stage, act: Callable[[Any], Any], job_type: str = "act", **fields: Any) -> str:
    """Submit with one attempt."""
    name = f"{act.__name__} {id(act)}"
    ACTS[name] = act
    return stage.submit(job_type, payload={"name": name}, max_attempts=1, **fields)


def states(stage: Stage, *ids: str) -> list[tuple[str, int]]:
    """Return each job's status and attempts."""
    return [(job["status"], job["attempts"]) for job in map(stage.job, ids)]


# ---- no connection


@contextmanager
def all_lent(stage: Stage) -> Iterator[None]:
    pool = stage.app.resources.pool
    with ExitStack() as lent:
        for _ in range(pool.size):
            lent.enter_context(pool.lend())
        yield


@contextmanager
def none_opened(stage: Stage) -> Iterator[None]:
    """Refuse new connections of all but superusers; the worker keeps its own."""
    stage.app.resources.database.connection()
    [name] = stage.db.execute("SELECT quote_ident(current_database())").fetchone() or ("",)
    stage.db.execute(f"ALTER DATABASE {name} CONNECTION LIMIT 1".encode())
    yield
    stage.db.execute(f"ALTER DATABASE {name} CONNECTION LIMIT -1".encode())


@contextmanager
def all_broken(stage: Stage) -> Iterator[None]:
    """Lose each connection after its last check."""
    with stage.app.resources.pool.lend() as last:
        last.connection()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "has_gone", lambda _: False)
        lose_session(stage.app.resources.settings.database_url or "")
        yield


@pytest.mark.parametrize("kind", ["act_within", "act_alone"])
@pytest.mark.parametrize("fault", [all_lent, none_opened, all_broken])
def test_transactional_job_without_a_connection_is_given_back_uncharged(
    stage: Stage, fault: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt, "CONNECTION_PATIENCE_SECONDS", 0.2)
    job_id, beside = submit(stage, note, kind), submit(stage, lambda _: None)
    with fault(stage):
        stage.work(job_id, beside)
    assert states(stage, job_id, beside) == [("pending", 0), ("completed", 1)]
    assert [one["status"] for one in stage.attempts(job_id)] == ["released"]
    stage.make_due(job_id)
    stage.work(job_id)
    assert states(stage, job_id) == [("completed", 1)]
    assert stage.db.execute("SELECT job_id::text FROM notes").fetchall() == [(job_id,)]


def test_job_that_waits_for_a_connection_is_not_taken_for_one_that_hangs(stage: Stage, recycled: list[int]) -> None:
    job_id = submit(stage, note, timeout=timedelta(seconds=1))
    lent = ExitStack()
    lent.enter_context(all_lent(stage))
    back = threading.Timer(1.5, lent.close)
    back.start()
    stage.work(job_id)
    back.join()
    assert (states(stage, job_id), recycled) == ([("completed", 1)], [])


def test_job_without_connection_until_its_worker_ends_is_released_uncharged(stage: Stage) -> None:
    job_id = submit(stage, note)
    with all_lent(stage):
        stage.work(job_id, seconds=10.5)
    assert states(stage, job_id) == [("pending", 0)]
    assert [one["status"] for one in stage.attempts(job_id)] == ["released"]


# ---- whatever a job does


@pytest.fixture
def recycled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the exit codes that the process would have had."""
    codes: list[int] = []
    monkeypatch.setattr(driver, "exit_process", codes.append)
    monkeypatch.setattr(driver, "GIVEN_UP_AFTER_SECONDS", 0.2)
    return codes


def neighbours(stage: Stage, at_once: int = 0) -> list[str]:
    """Submit four of each kind; those that share connections wait until so many of their kind have one."""
    gate, present = threading.Barrier(max(1, at_once), timeout=20), list[int]()

    def write(context: Any) -> None:
        with context.db.transaction():
            note(context)
            if context.job.job_type == "act_within":
                gate.wait()

    async def write_on_loop(context: Any) -> None:
        async with context.db.transaction():
            await context.db.execute("INSERT INTO notes VALUES (%s) ON CONFLICT DO NOTHING", (context.job.id,))
            present.append(1)
            while len(present) < at_once:
                await asyncio.sleep(0.01)

    return [submit(stage, write_on_loop if kind == "act_async" else write, kind) for kind in KINDS * 4]


@pytest.mark.parametrize(("deed", "kind"), DEEDS)
def test_culprit_alone_is_charged(stage: Stage, recycled: list[int], deed: str, kind: str) -> None:
    act, becomes = DEEDS[deed, kind]
    limit = timedelta(seconds=0.3 if deed in ("spin", "sleep in C") else 20)
    culprits = [submit(stage, act, kind, timeout=limit) for _ in range(2)]
    beside = neighbours(stage)
    stage.work(culprits[0], *beside[:8], culprits[1], *beside[8:])
    broken_off = [id_ for id_ in beside if stage.job(id_)["status"] != "completed"]
    assert bool(recycled) == bool(broken_off) or not broken_off
    time.sleep(HANG_SECONDS if recycled else 0)
    stage.make_due(*broken_off)
    after = neighbours(stage, at_once=4)
    stage.work(*broken_off, *after)
    assert states(stage, *culprits) == [(becomes, 1)] * 2
    assert states(stage, *beside, *after) == [("completed", 1)] * 32
    assert stage.db.execute("SELECT count(*) FROM notes").fetchone() == (32,)


def test_job_whose_module_ends_the_process_is_charged_alone(stage: Stage) -> None:
    culprit, beside = submit(stage, note), neighbours(stage)
    stage.db.execute("UPDATE signalbox.jobs SET job_type = 'exits' WHERE id = %s", (culprit,))
    stage.work(culprit, *beside)
    assert states(stage, culprit, *beside) == [("failed", 1), *[("completed", 1)] * 16]
