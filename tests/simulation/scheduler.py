"""Choose by the seed which actor goes on next, what time it is, and what goes wrong.

An actor is a thread, so that it can be stopped in the middle of the engine's own functions; but exactly one of them
goes on at a time, until it pauses: nothing depends on the machine. Time stands still while anybody can go on.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random

import psycopg

BEGINNING = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
MOST_STEPS = 40_000
MOST_READS = 10_000
TRACED_STEPS = 100


class Violation(Exception):
    """Say that an invariant does not hold."""


class Stopped(BaseException):
    """End an actor: its process was killed, or the simulation is over."""


@dataclass(eq=False)
class Process:
    """Die and freeze as a whole."""

    name: str
    mortal: bool = True
    killed: bool = False
    disturbed: bool = False  # killed, frozen, or without the database for a moment
    frozen_until: float = 0.0
    skew: float = 0.0  # seconds that its clock is ahead
    is_older: bool = False  # of an older release


def _locked() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


@dataclass(eq=False)
class Actor:
    """Run one thread of control."""

    name: str
    process: Process
    ready_at: float
    done: bool = False
    baton: threading.Lock = field(default_factory=_locked)

    @property
    def due_at(self) -> float:
        return max(self.ready_at, self.process.frozen_until)


@dataclass(frozen=True)
class Faults:
    """Say how often each fault happens at a statement's boundary."""

    kill: float = 0.0
    freeze: float = 0.0
    break_off: float = 0.0  # before a statement, or after its commit: the answer is lost
    outage: float = 0.0  # of the database, for all
    dawdle: float = 0.0
    refuse_send: float = 0.0
    lose_message: float = 0.0
    double_message: float = 0.0
    delay_message: float = 0.0
    skip_sweep: float = 0.0
    double_sweep: float = 0.0

    @staticmethod
    def of(chance: Random) -> Faults:
        """Choose a few kinds: all of them together would hide each other."""
        rates = {"kill": 0.02, "freeze": 0.01, "break_off": 0.05, "outage": 0.005, "dawdle": 0.2}
        others = {name: 0.2 for name in Faults.__dataclass_fields__ if name not in rates}
        return Faults(**{name: most * chance.choice((0, 0, 0.3, 1)) for name, most in (rates | others).items()})


class Scheduler:
    """Own the actors of one seed, and their time."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.faults = Faults.of(self.chance)
        self.now = self.away_until = 0.0
        self.steps = self.reads = 0
        self.trace: deque[tuple[float, str, str]] = deque(maxlen=TRACED_STEPS)
        self.failure: BaseException | None = None
        self.over = False
        self.actors: list[Actor] = []
        self.main = self.current = Actor("main", Process("main"), 0.0)

    @property
    def clock(self) -> datetime:
        return BEGINNING + timedelta(seconds=self.now)

    def read_clock(self) -> float:
        """Return monotonic seconds. They move for an actor that keeps asking, or it would never end."""
        self.reads += 1
        if self.reads > 100:
            self.now += 0.001
        if self.reads > MOST_READS:
            raise Violation(f"{self.current.name} asks for the time on and on, and does nothing")
        return self.now

    def happens(self, rate: float) -> bool:
        return rate > 0 and self.chance.random() < rate

    def note(self, what: str) -> None:
        self.trace.append((self.now, self.current.name, what))

    def spawn(self, name: str, act: Callable[[], object], process: Process | None = None) -> Actor:
        """Add an actor that goes on when it is chosen."""
        actor = Actor(name, process or Process(name), self.now)
        self.actors.append(actor)
        threading.Thread(target=self._live, args=(actor, act), daemon=True).start()
        return actor

    def run(self) -> None:
        """Let the actors go on until `over`; raise what one of them raised."""
        self._hand_on()
        self.over = True
        for actor in list(self.actors):
            if not actor.done:
                self.current = actor
                actor.baton.release()
                self.main.baton.acquire()
        if self.failure is not None:
            raise self.failure

    def pause(self, seconds: float = 0.0) -> None:
        """Let others go on, and come back after these seconds."""
        if self.current is self.main:
            return
        me = self.current
        self.reads = 0
        me.ready_at = self.now + max(0.0, seconds)
        self._hand_on()
        if self.over or me.process.killed:
            raise Stopped

    def dawdle(self) -> None:
        """Let others go on, perhaps for a while."""
        self.pause(self.chance.expovariate(4) if self.happens(self.faults.dawdle) else 0)

    def endanger(self, when: str) -> None:
        """Kill or freeze the current actor's process."""
        process = self.current.process
        if self.current is self.main or self.over:
            return
        if process.mortal and self.happens(self.faults.kill):
            self.kill(process, when)
        if process.mortal and self.happens(self.faults.freeze):
            process.disturbed = True
            process.frozen_until = self.now + self.chance.uniform(30, 200)
            self.note(f"is frozen {when} it until {process.frozen_until:.1f}")
            self.pause()

    def kill(self, process: Process, when: str) -> None:
        self.note(f"is killed {when} it")
        process.killed = process.disturbed = True
        raise Stopped

    def cut_off(self, when: str) -> None:
        """Break the current actor's connection before a statement or after its commit."""
        if self.current is self.main or self.over:
            return
        if self.happens(self.faults.outage):
            self.away_until = self.now + self.chance.uniform(5, 90)
        if self.now >= self.away_until and not self.happens(self.faults.break_off):
            return
        self.note(f"is cut off {when} it")
        self.current.process.disturbed = True
        raise psycopg.OperationalError("the connection broke, as the seed wants it")

    def _live(self, actor: Actor, act: Callable[[], object]) -> None:
        actor.baton.acquire()
        try:
            if not self.over and not actor.process.killed:
                act()
        except Stopped:
            pass
        except BaseException as error:
            self.failure = self.failure or error
        actor.done = True
        self.actors.remove(actor)
        self._choose().baton.release()

    def _hand_on(self) -> None:
        me, chosen = self.current, self._choose()
        if chosen is not me:
            chosen.baton.release()
            me.baton.acquire()

    def _choose(self) -> Actor:
        self.steps += 1
        if self.steps > MOST_STEPS:
            self.failure = self.failure or Violation("they go on and on, and time stands still")
        if self.over or self.failure is not None or not self.actors:
            self.current = self.main
            return self.main
        due = [(actor.due_at, actor) for actor in self.actors]
        self.now = max(self.now, min(at for at, _ in due))
        self.current = self.chance.choice([actor for at, actor in due if at <= self.now])
        return self.current
