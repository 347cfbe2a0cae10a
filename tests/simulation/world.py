"""Run PostgreSQL, SQS, workers, sweeps, a submitter and an operator in an order set by one seed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock
from uuid import UUID

from signalbox import budget
from signalbox.aws import sqs
from signalbox.invocation import Resources
from signalbox.packs.registries import JobTypeRegistry, TaskRegistry
from signalbox.postgres import retry
from signalbox.tasks import rescue_jobs
from signalbox.worker import attempt, core, driver, outbox
from tests.simulation.invariants import Invariants
from tests.simulation.outside import CLIENTS, InlineExecutor, Queue, Session, enter
from tests.simulation.people import Messenger, Operator, Submitter, sweep_each_minute
from tests.simulation.scheduler import Faults, Scheduler, Violation
from tests.simulation.worker import HEAVY, TYPES, Log, VirtualThread, Worker

REGISTRY = JobTypeRegistry(TYPES)


class World(Scheduler):
    """Hold everything of one seed."""

    def __init__(self, seed: int, session: Session) -> None:
        super().__init__(seed)
        self.session, self.job_types, self.log = session, REGISTRY, Log()
        self.queue = Queue(self)
        self.jobs = self.chance.randint(20, 30)
        self.calm_at = self.chance.uniform(100, 400)
        self.in_trouble, self.all_submitted = True, False
        self.resources = self._make_resources()
        self.invariants = Invariants(self)

    def simulate(self) -> None:
        """Run the seed; raise a Violation if an invariant fails."""
        CLIENTS.sqs = self.queue
        enter(self.session, self)
        submitter = Submitter(self)
        for name in ("w1", "w2", "older"):
            self.spawn(name, Worker(self, name, is_older=name == "older").live)
        self.spawn("heavy", Worker(self, "heavy", HEAVY).live)
        for name in ("rescue", "dispatch"):
            self.spawn(f"{name} rule", lambda name=name: sweep_each_minute(self, name))  # type: ignore[misc]
        self.spawn("submitter", submitter.live)
        self.spawn("operator", Operator(self, submitter).live)
        self.spawn("messenger", Messenger(self, submitter).live)
        for actor in self.actors:
            actor.process.mortal = False
        with self._instead():
            self.run()
        self.session.is_checking = True
        try:
            self.invariants.check_end()
            self.invariants.check_steps()
        finally:
            self.session.is_checking = False

    def calm_down(self) -> None:
        self.faults, self.in_trouble, self.away_until = Faults(), False, 0.0
        self.note("no more faults")

    def check(self) -> None:
        self.invariants.check()

    def _make_resources(self) -> Resources:
        database: Any = SimpleNamespace(connection=lambda: self.session, close=lambda: None)

        @contextmanager
        def lend(_: float = 0.0) -> Iterator[Any]:
            yield database

        def refuse(what: str, **_: Any) -> None:
            raise Violation(f"the engine logs an error: {what}")

        log: Any = SimpleNamespace(warning=lambda what, **_: self.note(what), error=refuse, count=lambda *_: None)
        settings: Any = SimpleNamespace(
            stack="sim", event_bus=None, job_events="none", worker_slots=self.chance.randint(2, 6),
            budget_margin_seconds=10, database_error_details=True,
        )  # fmt: skip
        pool: Any = SimpleNamespace(lend=lend)
        return Resources(
            settings=settings, tasks=TaskRegistry(()), database=database, pool=pool, async_pool=pool,
            clients=CLIENTS, log=log, job_types=REGISTRY, packs=(),
        )  # fmt: skip

    @contextmanager
    def _instead(self) -> Iterator[None]:
        """Replace the machine's time and chance by the seed's."""
        time = SimpleNamespace(
            monotonic=self.read_clock, time=self.clock.timestamp, sleep=self.pause, thread_time=lambda: 0.0
        )
        thread = type("Thread", (VirtualThread,), {"world": self})
        names: list[tuple[Any, str, Any]] = [
            *((module, "time", time) for module in (budget, driver, retry, outbox, attempt, rescue_jobs)),
            (outbox, "Thread", thread), (driver, "uuid4", lambda: UUID(int=self.chance.getrandbits(128))),
            (driver, "WATCH_EVERY_SECONDS", 3600.0), (core, "TAKE_UP_EVERY_SECONDS", 5.0),
            (attempt, "random", self.chance), (sqs, "ThreadPoolExecutor", InlineExecutor),
        ]  # fmt: skip
        with ExitStack() as stack:
            for module, name, value in names:
                stack.enter_context(mock.patch.object(module, name, value))
            yield
