"""Run the engine's own driver and core, with virtual job code in the place of threads.

What a job does is drawn by the seed, attempt by attempt; each start of its code is logged, for the invariants.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from queue import Empty
from typing import Any

import psycopg

from signalbox.invocation import Invocation
from signalbox.jobs.job import ClaimedJob
from signalbox.jobs.verdict import CANCELLED, Verdict, check_pieces, of_answer, of_error
from signalbox.packs.job_payload import JobPayload
from signalbox.packs.job_type import JobType, Lane
from signalbox.packs.outcome import (
    Cancelled,
    Completed,
    JobTimedOut,
    More,
    Permanent,
    RateLimited,
    Snooze,
    Transient,
    Wait,
)  # fmt: skip
from signalbox.packs.retry_policy import RetryPolicy
from signalbox.worker.attempt import Attempt, AttemptResult
from signalbox.worker.driver import Driver
from signalbox.worker.groups import TypeGroups
from signalbox.worker.lease import LIGHT
from signalbox.worker.timeout import ThreadTimer
from tests.simulation.scheduler import Process, Stopped, Violation

FUNCTION_SECONDS = 360.0
HIDDEN_SECONDS = 6 * FUNCTION_SECONDS
HEAVY = ("heavy",)
WORDS = (
    ("complete",) * 8
    + ("fail", "fail", "permanent", "snooze", "more", "more", "limited", "kill", "cancel")
    + ("wait",) * 3
)
LENGTHS = (0.01, 0.1, 1.0, 5.0, 20.0, 90.0, 400.0)
_RETRY = RetryPolicy(max_attempts=3)
_MODULE = "tests.simulation.worker"
TYPES = (
    JobType("short", "waits", _MODULE, retry=_RETRY, side_by_side=3),
    JobType("long", "waits, too", _MODULE, retry=_RETRY, side_by_side=10, max_pieces=3),
    JobType("alone", "computes", _MODULE, retry=_RETRY, side_by_side=1),
    JobType("large", "needs memory", _MODULE, retry=_RETRY, lane=Lane.HEAVY),
    JobType("paid", "writes", _MODULE, retry=_RETRY, side_by_side=3, transactional=True),
)


class Short(JobPayload):
    """Hold nothing: the seed says what becomes of the job."""


Long = Alone = Large = Paid = Short


def paid(context: Any) -> Any:
    """Have an effect in the transaction that ends the job."""
    job, world = context.job, context.db.world
    word = world.log.started[job.id, job.token]
    answer = wait_of(job, world.clock) if word == "wait" else ANSWERS[word](job)
    if isinstance(answer, Completed):
        context.db.execute("INSERT INTO sim.effects VALUES (%s)", [job.id])
    return answer


def short(_: Any) -> None:
    """Stand for the code, which is virtual."""


long = alone = large = short


@dataclass
class Log:
    """Log what the virtual code has done, by job and token."""

    started: dict[tuple[str, str], str] = field(default_factory=dict)  # how it will end
    suspects: set[tuple[str, str]] = field(default_factory=set)  # begun after a worker had died with them
    charged: dict[str, set[str]] = field(default_factory=dict)  # by job: what its attempts were answered by a step
    workers: dict[str, Process] = field(default_factory=dict)  # by the worker's id


@dataclass
class VirtualThreads:
    """Run a driver's attempts in virtual time, as both its runners and its queue. Each end is drawn first."""

    world: Any
    driver: Driver
    lanes: tuple[str, ...]  # of its worker
    ends: list[tuple[float, int, Attempt, str]] = field(default_factory=list)
    numbers: count[int] = field(default_factory=count)

    def run(self, attempts: Attempt | Iterable[Attempt], _: int = 0) -> None:
        for attempt in [attempts] if isinstance(attempts, Attempt) else attempts:
            self._start(attempt)
        jobs = [attempt.job for attempt in self.driver.at_work.values()]
        if not all(job.lane in self.lanes for job in jobs) or (self.lanes == HEAVY and len(jobs) > 1):
            raise Violation(f"a worker of {self.lanes} runs {', '.join(job.id for job in jobs)}")
        if len(jobs) > 1 and not self.driver.at_work.keys().isdisjoint(self.world.log.suspects):
            raise Violation(f"a suspect is not alone among {', '.join(map(str, self.driver.at_work))}")

    def _start(self, attempt: Attempt) -> None:
        world, job = self.world, attempt.job
        if (job.id, job.token) in world.log.started:
            raise Violation(f"job {job.id} is started twice under one token")
        word = world.chance.choice(WORDS) if world.in_trouble or job.pieces < 2 else "complete"
        if word == "kill" and not world.in_trouble:
            word = "complete"
        seconds, most = world.chance.choice(LENGTHS) * world.chance.random(), attempt._seconds
        if seconds > most:
            word, seconds = "time out", most
        world.note(f"starts the code of j{int(job.id[-8:])}, to {word} in {seconds:.2f} s")
        world.log.started[job.id, job.token] = word
        if world.invariants.is_suspect(job.id, job.token):
            world.log.suspects.add((job.id, job.token))
        heapq.heappush(self.ends, (world.now + seconds, next(self.numbers), attempt, word))

    def get(self, timeout: float = 0.0) -> AttemptResult:
        """Act as the driver's queue."""
        world = self.world
        if self.ends and self.ends[0][0] <= world.now + timeout:
            world.pause(self.ends[0][0] - world.now)
            ended, _, attempt, word = heapq.heappop(self.ends)
            if word == "kill":
                world.kill(world.current.process, "by its job in the middle of")
            if attempt._is_transactional:
                return self._perform(attempt, word)
            return AttemptResult(attempt, self._verdict(attempt, word), attempt.claimed_at, ended, 0.0)
        world.pause(timeout + 1e-6)  # time may not stand still a rounding before what is waited for
        raise Empty

    def empty(self) -> bool:
        return not self.ends or self.ends[0][0] > self.world.now

    def close(self) -> None: ...

    def _perform(self, attempt: Attempt, word: str) -> AttemptResult:
        """Let the engine run the code, end the job and commit, at the instant of its end."""
        timer = ThreadTimer()
        timer.rang, own, began = word == "time out", attempt.resources.database, attempt.claimed_at
        try:
            return attempt._perform_in_transaction(attempt._known(), timer, own, began, 0.0)
        except Exception as error:
            return AttemptResult(attempt, attempt._failed(error, timer), began, self.world.now, 0.0)

    def _verdict(self, attempt: Attempt, word: str) -> Verdict:
        job, kind = attempt.job, attempt.resources.job_types.find(attempt.job.job_type).type
        now = self.world.clock + timedelta(seconds=self.world.current.process.skew)
        if job.cancel_requested_at is not None or (attempt.progress.cancel_asked and word == "cancel"):
            return CANCELLED
        if word == "time out":
            return attempt.timed_out()
        try:
            if job.job_type == "long":
                self._charge(attempt)
            answer = wait_of(job, now) if word == "wait" else ANSWERS[word](job)
            check_pieces(kind, job, answer, now)
            return of_answer(kind, answer)
        except Exception as error:
            return of_error(kind, job, error, self.world.chance.random(), now)

    def _charge(self, attempt: Attempt) -> None:
        """Make a step that may be made once alone."""
        job, timer = attempt.job, ThreadTimer()
        context = attempt._context(attempt._known(), lambda: self.world.session, timer)
        self.world.log.charged.setdefault(job.id, set()).add(context.once("charge", lambda: job.token))


def wait_of(job: ClaimedJob, now: datetime) -> Wait:
    """Return a wait for a signal with the job's own key, which the messenger sends, or for four minutes."""
    return Wait(f"key-{int(job.id[-8:])}", now + timedelta(minutes=4))


def _raise(error: Exception) -> Any:
    raise error


ANSWERS: dict[str, Callable[[ClaimedJob], Any]] = {
    "complete": lambda job: Completed({"token": job.token}),
    "cancel": lambda job: Cancelled("as the seed wants it"),
    "more": lambda job: More({"piece": job.pieces}, delay=timedelta(seconds=job.pieces * 5)),
    "snooze": lambda job: Snooze(timedelta(seconds=20), "as the seed wants it", {"piece": job.pieces}),
    "limited": lambda job: _raise(RateLimited("slowly")),
    "fail": lambda job: _raise(Transient("again")),
    "permanent": lambda job: _raise(Permanent("never")),
    "time out": lambda job: _raise(JobTimedOut("too slow")),
}


class VirtualDriver(Driver):
    """Give up a killed process's work at once, and end no process of ours."""

    world: Any

    def _await_the_others(self) -> None:
        if not isinstance(self.error, Stopped):
            super()._await_the_others()

    def _end_process(self) -> None:
        self.world.kill(self.world.current.process, "since its jobs hang after")


@dataclass
class Worker:
    """Act as an execution environment, invoked with one batch after the other."""

    world: Any
    name: str
    lanes: tuple[str, ...] = LIGHT
    is_older: bool = False

    def live(self) -> None:
        """Live until the simulation is over. A killed process has a successor."""
        world, groups = self.world, TypeGroups(self.world.job_types, 4)
        for number in count(1):
            me = world.current
            process = me.process = Process(f"{self.name}/{number}", mortal=False, is_older=self.is_older)
            most = 1 if self.lanes == HEAVY else world.chance.randint(1, 10)
            batch = world.queue.receive(self.lanes, most, HIDDEN_SECONDS)
            process.mortal, process.skew = True, world.chance.uniform(-2, 2)
            driver = self._driver(groups, process, batch[0].lane)
            messages = {one.body["job_id"]: one.body["job_type"] for one in batch}
            world.note("receives " + " ".join(f"j{int(id_[-8:])}" for id_ in messages))
            world.log.workers[driver.invocation.worker_id] = process
            with suppress(Stopped):
                driver.run(messages)
            if world.over:
                return
            if driver.error is None:
                world.queue.delete(batch)
                continue
            self._fail(driver.error, batch)
            process.killed = True
            if isinstance(driver.error, Stopped):
                groups = TypeGroups(world.job_types, 4)
            me.process = Process("nobody", mortal=False)
            world.pause(world.chance.uniform(0, 10))

    def _fail(self, error: BaseException, batch: Sequence[Any]) -> None:
        """Return the messages if the database is away; do nothing more if killed."""
        if isinstance(error, psycopg.OperationalError):
            for one in batch:
                one.visible_at = self.world.now + 1
        elif not isinstance(error, Stopped):
            raise error

    def _driver(self, groups: TypeGroups, process: Process, lane: str) -> VirtualDriver:
        world = self.world
        ends_at = world.now + FUNCTION_SECONDS
        invocation = Invocation(process.name, world.clock + timedelta(seconds=process.skew), ends_at, "0")
        event = {"Records": [{"eventSourceARN": f"arn:aws:sqs:us-east-1:123456789012:sim-{lane}"}]}
        driver = VirtualDriver(world.resources, invocation, groups, event)
        driver.world = world
        virtual: Any = VirtualThreads(world, driver, self.lanes)
        driver.threads = driver.main = driver.done = virtual
        return driver


class VirtualThread:
    """Run a thread of a worker's process as another actor."""

    world: Any = None

    def __init__(self, target: Callable[..., None], args: tuple[Any, ...] = (), **_: Any) -> None:
        self.act = lambda: target(*args)

    def start(self) -> None:
        process = self.world.current.process
        self.actor = self.world.spawn(f"{process.name} publisher", self.act, process)

    def is_alive(self) -> bool:
        return not self.actor.done

    def join(self) -> None:
        while self.is_alive():
            self.world.pause(0.1)
