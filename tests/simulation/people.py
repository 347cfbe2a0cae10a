"""Let sweeps, a submitter and an operator act on jobs through the engine's own functions."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg

from signalbox.budget import Budget
from signalbox.dead_letters.redrive import redrive
from signalbox.errors import Refused, Unavailable
from signalbox.jobs.dependency import Dependency
from signalbox.ledger.context import Context
from signalbox.operate import caps
from signalbox.operate.audit import Actor
from signalbox.operate.bulk import BulkContext
from signalbox.operate.cancel import cancel
from signalbox.operate.caps import Cap, CapTarget
from signalbox.operate.filters import DeadLetterFilter, JobFilter
from signalbox.operate.pause import pause, resume
from signalbox.publish.held_jobs import next_held
from signalbox.submit.groups import seal_group
from signalbox.submit.insert import submit
from signalbox.submit.new_job import NewJob
from signalbox.tasks.dispatch_jobs import dispatch_jobs
from signalbox.tasks.rescue_jobs import rescue_jobs
from tests.simulation.scheduler import Process, Violation
from tests.simulation.worker import TYPES

CAP_TARGETS = (
    CapTarget("type", "long"), CapTarget("key", "k1"), CapTarget("tenant", "t1"), CapTarget("lane", "normal")
)  # fmt: skip
SWEEPS = {"rescue": rescue_jobs, "dispatch": dispatch_jobs}
BY = Actor("simulation")


def sweep_each_minute(world: Any, name: str) -> None:
    """Fire a little late and, by the faults, not at all or twice."""
    faults = world.faults
    while True:
        late = world.chance.choice((0, 1, 20)) * world.chance.random()
        world.pause(60 - world.now % 60 + late)
        if world.in_trouble and world.happens(faults.skip_sweep):
            continue
        for number in range(2 if world.happens(faults.double_sweep) else 1):
            world.spawn(f"{name} {world.now // 60:.0f}.{number}", lambda: _sweep(world, name), Process(name))


def _sweep(world: Any, name: str) -> None:
    now = world.clock + timedelta(seconds=world.chance.uniform(-2, 2))
    metrics: Any = world.resources.log
    context = Context("sweep", now, now, None, Budget.of(60), world.session, metrics, "sweeper", world.resources)
    with suppress(psycopg.OperationalError, Unavailable):
        SWEEPS[name](context)


class Submitter:
    """Submit jobs, alone and together, with parents and in groups."""

    def __init__(self, world: Any) -> None:
        self.world, self.ids, self.groups = world, list[str](), list[str]()

    def live(self) -> None:
        world, chance = self.world, self.world.chance
        while len(self.ids) < world.jobs:
            self._submit([self._job() for _ in range(chance.choice((1, 1, 1, 2, 5)))])
            world.pause(chance.choice((0, 1, 30)) * chance.random())
        for group in self.groups:
            self._until_it_works(partial(self._seal, group))
        world.all_submitted = True

    def _job(self) -> NewJob:
        chance = self.world.chance
        id_ = f"00000000-0000-7000-8000-0000{len(self.ids) + 1:08d}"
        parents = chance.sample(self.ids, min(len(self.ids), chance.choice((0, 0, 0, 1, 2))))
        waits = [Dependency(one, chance.choice(("success", "completion")), chance.choice(("fail", "cancel", "proceed")))
                 for one in parents]  # fmt: skip
        self.ids.append(id_)
        group = chance.choice((None, None, None, "g1", "g2"))
        if group and group not in self.groups:
            self.groups.append(group)
        return NewJob(
            job_type=chance.choice(("short", "short", "long", "alone", "paid", "paid", "large")), id=id_,
            idempotency_key=id_, depends_on=waits,
            priority=chance.choice((2, 5, 5, 5, 9)), tenant=chance.choice((None, "t1", "t2")),
            cap_key=chance.choice((None, "k1")), group=group, max_attempts=chance.randint(1, 3),
            delay=timedelta(seconds=chance.choice((0, 0, 5, 90)) * chance.random()) or None,
        )  # fmt: skip

    def _submit(self, jobs: list[NewJob]) -> None:
        now = self.world.clock + timedelta(seconds=self.world.chance.uniform(-2, 2))
        db, job_types = self.world.session, self.world.job_types
        submitted = self._until_it_works(lambda: submit(db, job_types, jobs, now))
        self.world.resources.publisher.publish_submitted(submitted)

    def _seal(self, group: str) -> None:
        number = self.groups.index(group) + 1
        id_ = f"00000000-0000-7000-8000-0000{9000 + number:08d}"
        job = NewJob(job_type="short", id=id_, idempotency_key=id_)
        world = self.world
        _, released = seal_group(world.session, world.job_types, group, world.clock, job)
        world.resources.publisher.send_due(world.session, released)

    def _until_it_works(self, act: Any) -> Any:
        while True:
            try:
                return act()
            except psycopg.OperationalError:
                self.world.note("tries again")
                self.world.pause(1)


class Messenger:
    """Send signals that jobs wait for, early, late and twice; the first alone may count."""

    def __init__(self, world: Any, submitter: Submitter) -> None:
        self.world, self.submitter, self.sent = world, submitter, set[str]()

    def live(self) -> None:
        world, chance = self.world, self.world.chance
        while not world.over:
            world.pause(chance.choice((1, 20, 60)) * chance.random())
            if self.submitter.ids:
                with suppress(psycopg.OperationalError):
                    self._send(f"key-{int(chance.choice(self.submitter.ids)[-8:])}")

    def _send(self, key: str) -> None:
        [(is_first, woken)] = self.world.session.execute(
            "SELECT is_first, woken::text[] FROM signalbox.signal(%s)", [key]
        ).fetchall()
        if is_first and key in self.sent:
            raise Violation(f"two signals with the key {key} were the first")
        self.sent |= {key} if is_first else set()
        if not self.world.happens(self.world.faults.skip_sweep):  # as who sends it in SQL, and leaves the rest
            self.world.resources.publisher.send_due(self.world.session, woken)


class Operator:
    """Give orders, and in the end take back what would hold jobs for ever."""

    def __init__(self, world: Any, submitter: Submitter) -> None:
        self.world, self.submitter = world, submitter

    def live(self) -> None:
        world, chance = self.world, self.world.chance
        while world.now < world.calm_at:
            with suppress(psycopg.OperationalError, Refused):
                chance.choice(ORDERS)(self)
            world.pause(chance.choice((1, 20, 60)) * chance.random())
        world.calm_down()
        for what in CAP_TARGETS:
            with suppress(Refused):
                self._resume(what)
            if chance.random() < 0.3:
                self._cap(what, Cap())
            else:
                self._cap(what, Cap(chance.randint(1, 3)))
        with suppress(Refused):
            resume(world.session, world.job_types, JobFilter(status="paused"), self._context)

    @property
    def _context(self) -> BulkContext:
        return BulkContext(BY, Budget.of(60))

    def _cap(self, what: CapTarget | None = None, cap: Cap | None = None) -> None:
        world, chance = self.world, self.world.chance
        what = what or chance.choice(CAP_TARGETS)
        most, rate = chance.choice((None, 0, 1, 1, 2, 3)), chance.choice((None, None, 1, 10))
        cap = cap or Cap(most, rate, rate and 10)
        world.note(f"sets {what} to {cap.max_running} at once, {cap.rate} in 10 s")
        messages = caps.set_cap(world.session, world.job_types, what, cap, by=BY)
        world.resources.publisher.send(messages)

    def _pause(self) -> None:
        world = self.world
        caps.pause_target(world.session, world.job_types, world.chance.choice(CAP_TARGETS), by=BY)

    def _resume(self, what: CapTarget | None = None) -> None:
        world = self.world
        what = what or world.chance.choice(CAP_TARGETS)
        done = caps.resume_target(world.session, world.job_types, what, self._context)
        world.resources.publisher.send(next_held(world.session, [what.name]))
        world.resources.publisher.send_due(world.session, done.due)

    def _redrive(self) -> None:
        """Redrive a type's failed jobs and, to be refused, those redriven before; retry a lost answer."""
        world, resources = self.world, self.world.resources
        letters = DeadLetterFilter(job_type=world.chance.choice(TYPES).name, status=["pending", "redriven"])
        for _ in range(2):
            with suppress(psycopg.OperationalError):
                done = redrive(world.session, world.job_types, resources.invoker, letters, BY, now=world.clock,
                               budget=Budget.of(60))  # fmt: skip
                world.note(f"redrives {done['redriven']}")
                return

    def _order(self) -> None:
        world, ids = self.world, self.submitter.ids
        if not ids:
            return
        selection = JobFilter(ids=world.chance.sample(ids, min(len(ids), 2)))
        order = world.chance.choice((cancel, pause, resume))
        done = order(world.session, world.job_types, selection, self._context)
        world.resources.publisher.send_due(world.session, done.due)


ORDERS = (
    *[Operator._cap] * 3, Operator._pause, Operator._resume, *[Operator._order] * 2, Operator._redrive,
)  # fmt: skip
