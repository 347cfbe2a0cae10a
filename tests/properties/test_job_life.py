"""Any sequence of events leads jobs where a small model says, within the table of states."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signalbox.budget import Budget
from signalbox.dead_letters.redrive import redrive
from signalbox.errors import Refused
from signalbox.operate.audit import Actor
from signalbox.operate.bulk import BulkContext
from signalbox.operate.cancel import cancel
from signalbox.operate.filters import DeadLetterFilter, JobFilter
from signalbox.operate.pause import pause, resume
from signalbox.testing.stage import Stage
from tests.support.jobs import TEST_JOB_TYPES, obeying

ATTEMPTS = 3
WAITING = ("pending", "queued")


@dataclass
class Model:
    """Say what a job should be."""

    word: str
    status: str = "queued"
    attempts: int = 0
    due: bool = True
    pieces: int = 0
    unwanted: bool = False

    @property
    def claimable(self) -> bool:
        return self.status in WAITING and self.due

    def deliver(self) -> None:
        if self.claimable:
            self.attempts += 1
            getattr(self, f"_{self.word}")()

    def lose(self) -> None:
        if self.claimable:
            self.attempts += 1
            self.status = "running"

    def rescue(self) -> None:
        if self.status == "running":
            self._retry()
            self.due = True  # at once: it has waited for its lease

    def cancel(self) -> None:
        if self.status == "running":
            self.unwanted = True
        elif self.status in (*WAITING, "paused"):
            self.status = "cancelled"

    def pause(self) -> None:
        if self.status in WAITING:
            self.status = "paused"

    def resume(self) -> None:
        if self.status == "paused":
            self.status = "pending"

    def redrive(self) -> None:
        if self.status == "failed":
            self.status, self.attempts, self.due = "pending", 0, True

    def _complete(self) -> None:
        self.status = "completed"

    def _cancel(self) -> None:
        self.status = "cancelled"

    def _fail(self) -> None:
        self._retry()

    def _fail_for_good(self) -> None:
        self.status = "failed"

    def _wait(self) -> None:
        self.status, self.due = "pending", False
        self.attempts -= 1

    def _snooze(self) -> None:
        self._wait()

    def _more(self) -> None:
        self.pieces += 1
        if self.pieces == 4:
            return self._complete()
        self.status, self.attempts = "pending", 0
        return None

    def _retry(self) -> None:
        if self.unwanted:
            self.status = "cancelled"
        elif self.attempts >= ATTEMPTS:
            self.status = "failed"
        else:
            self.status, self.due = "pending", False


@dataclass
class World:
    """Act on real jobs."""

    stage: Stage
    jobs: dict[str, Model] = field(default_factory=dict)

    def submit(self, word: str) -> None:
        job_id = self.stage.submit(obeying(word, 600, max_attempts=ATTEMPTS))
        self.jobs[job_id] = Model(word)

    def deliver(self, job_id: str) -> None:
        self.stage.work(job_id, job_id)

    def lose(self, job_id: str) -> None:
        """Claim it for a worker that vanishes, with an expired lease."""
        statement = "SELECT signalbox.claim_jobs(%s::uuid[], %s, 'lost', NULL, interval '-1 s')"
        self.stage.db.execute(statement, ([job_id], uuid4()))

    def rescue(self) -> None:
        self.stage.run("rescue_jobs", datetime.now(UTC), force=True)

    def cancel(self, job_id: str) -> None:
        self._order(cancel, job_id)

    def pause(self, job_id: str) -> None:
        self._order(pause, job_id)

    def resume(self, job_id: str) -> None:
        self._order(resume, job_id)

    def redrive(self, job_id: str) -> None:
        find = "SELECT id::text FROM signalbox.dead_letter_jobs WHERE original_job_id = %s"
        ids = [row[0] for row in self.stage.db.execute(find, (job_id,)).fetchall()]
        resources = self.stage.app.resources
        with suppress(Refused):
            which = DeadLetterFilter(ids=ids or [job_id])
            redrive(
                self.stage.db, resources.job_types, resources.invoker, which, Actor("tests", "again"),
                now=datetime.now(UTC), budget=Budget.of(30),
            )  # fmt: skip

    def wait(self) -> None:
        self.stage.make_due(*self.jobs)

    def _order(self, act: Callable[..., Any], job_id: str) -> None:
        context = BulkContext(Actor("tests", "as the test wants it"), Budget.of(30))
        with suppress(Refused):
            act(self.stage.db, self.stage.job_types, JobFilter(ids=[job_id]), context)

    def rows(self) -> dict[str, tuple[str, int]]:
        query = "SELECT id::text, status, attempts FROM signalbox.jobs WHERE id = ANY (%s::uuid[])"
        return {row[0]: row[1:] for row in self.stage.db.execute(query, (list(self.jobs),)).fetchall()}


@pytest.fixture
def world(stage: Stage) -> World:
    return World(stage.with_job_types(*TEST_JOB_TYPES))


words = st.sampled_from(["complete", "fail", "fail_for_good", "snooze", "wait", "more", "cancel"])
to_one = st.sampled_from(["deliver", "deliver", "deliver", "lose", "cancel", "pause", "resume", "redrive"])
steps = st.one_of(
    st.tuples(st.just("submit"), words),
    st.tuples(to_one, st.integers(0, 3)),
    st.tuples(st.just("rescue"), st.just(0)),
    st.tuples(st.just("wait"), st.just(0)),
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(first=words, more=st.lists(steps, min_size=5, max_size=25))
def test_job_always_becomes_what_the_model_says(world: World, first: str, more: list[Any]) -> None:
    world.jobs.clear()
    for verb, what in [("submit", first), *more]:
        take(world, verb, what)
        assert world.rows() == {id_: (job.status, job.attempts) for id_, job in world.jobs.items()}, (verb, what)
    world.rescue()
    leases = "SELECT count(*) FROM signalbox.jobs WHERE lease_token IS NOT NULL AND lease_expires_at < now()"
    assert world.stage.db.execute(leases).fetchone() == (0,)


def take(world: World, verb: str, what: Any) -> None:
    """Take one step in the world and in the model."""
    if verb == "submit":
        return world.submit(what)
    if verb in ("rescue", "wait"):
        getattr(world, verb)()
        for job in world.jobs.values():
            if verb == "rescue":
                job.rescue()
            job.due = job.due or verb == "wait"
        return None
    job_id = list(world.jobs)[what % len(world.jobs)]
    getattr(world, verb)(job_id)
    getattr(world.jobs[job_id], verb)()
    return None
