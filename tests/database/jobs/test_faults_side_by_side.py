"""Faults of jobs that share a worker: the culprit alone is charged; its neighbours complete in their only attempt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from signalbox import database
from signalbox.jobs.job_type import JobType
from signalbox.worker import attempt
from tests.support.jobs.act import ACTS
from tests.support.lane_stand_in import LaneStandIn
from tests.support.lost_session import lose_session
from tests.support.stage import Stage
from tests.support.workshop import Workshop

MODULE, TIMEOUT = "tests.support.jobs.act", timedelta(seconds=20)
TYPES = (
    JobType("act", "waits", MODULE, timeout=TIMEOUT),
    JobType("act_async", "waits on the loop", MODULE, timeout=TIMEOUT),
    JobType("act_within", "writes with its end", MODULE, timeout=TIMEOUT, transactional=True),
    JobType("act_alone", "the same in the main thread", MODULE, timeout=TIMEOUT, transactional=True, side_by_side=1),
)


@pytest.fixture
def workshop(stage: Stage, db: psycopg.Connection, lanes: LaneStandIn) -> Workshop:
    db.execute("CREATE TABLE notes (job_id uuid PRIMARY KEY)")
    db.execute("GRANT SELECT, INSERT ON notes TO signalbox_writer")
    return Workshop(stage, db, TYPES)


def submit(workshop: Workshop, act: Callable[[Any], Any], job_type: str = "act", **fields: Any) -> str:
    """With one attempt."""
    name = f"{act.__name__} {id(act)}"
    ACTS[name] = act
    return workshop.submit(job_type, payload={"name": name}, max_attempts=1, **fields).id


def note(context: Any) -> None:
    context.db.execute("INSERT INTO notes VALUES (%s)", (context.job.id,))


def states(workshop: Workshop, *ids: str) -> list[tuple[str, int]]:
    """Status and attempts of each."""
    return [(job["status"], job["attempts"]) for job in map(workshop.job, ids)]


# ---- no connection


@contextmanager
def all_lent(workshop: Workshop) -> Iterator[None]:
    pool = workshop.engine.tools.pool
    with ExitStack() as lent:
        for _ in range(pool.size):
            lent.enter_context(pool.lend())
        yield


@contextmanager
def none_opened(workshop: Workshop) -> Iterator[None]:
    """Postgres refuses new connections of all but superusers; the worker keeps its own."""
    workshop.engine.tools.database.connection()
    [name] = workshop.db.execute("SELECT quote_ident(current_database())").fetchone() or ("",)
    workshop.db.execute(f"ALTER DATABASE {name} CONNECTION LIMIT 1".encode())
    yield
    workshop.db.execute(f"ALTER DATABASE {name} CONNECTION LIMIT -1".encode())


@contextmanager
def all_broken(workshop: Workshop) -> Iterator[None]:
    """Each connection is lost after the last look at it."""
    with workshop.engine.tools.pool.lend() as last:
        last.connection()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "has_gone", lambda _: False)
        lose_session(workshop.engine.tools.settings.database_url or "")
        yield


@pytest.mark.parametrize("kind", ["act_within", "act_alone"])
@pytest.mark.parametrize("fault", [all_lent, none_opened, all_broken])
def test_transactional_job_without_a_connection_is_given_back_uncharged(
    workshop: Workshop, fault: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt, "CONNECTION_PATIENCE_SECONDS", 0.2)
    job_id, beside = submit(workshop, note, kind), submit(workshop, lambda _: None)
    with fault(workshop):
        workshop.work(job_id, beside)
    assert states(workshop, job_id, beside) == [("pending", 0), ("completed", 1)]
    assert [one["status"] for one in workshop.attempts(job_id)] == ["released"]
    workshop.make_due(job_id)
    workshop.work(job_id)
    assert states(workshop, job_id) == [("completed", 1)]
    assert workshop.db.execute("SELECT job_id::text FROM notes").fetchall() == [(job_id,)]
