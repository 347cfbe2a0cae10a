"""Decide which jobs begin when, and when their ends are recorded. The core does no I/O and reads no clock.

It is a generator that yields what it wants and is sent the answer. The driver answers it with connections and threads;
a simulation can answer it with a seeded scheduler.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from signalbox.jobs.job import ClaimedJob
from signalbox.worker.groups import TypeGroup
from signalbox.worker.lease import Due, Held, Left

# Ends are recorded this long after the first of them, or with this many, and at once when nothing else is running.
RECORD_AFTER_SECONDS = 1.0
RECORD_AT_MOST = 1000
BEAT_SECONDS = 15.0
# While many jobs are running, one claim fills the places that become free in this time.
CLAIM_EVERY_SECONDS = 0.005
# A job does not begin with less of its own time left than this share: it would only be broken off.
LEAST_SHARE = 0.5
# How long a worker with nothing else to do waits for the next place of a rate; for later ones, a message is sent.
WAIT_FOR_HELD_SECONDS = 2.0
LOOK_AGAIN_SECONDS = 0.2
TAKE_UP_EVERY_SECONDS, TAKE_UP_AT_MOST = 1.0, 50
HELD_AT_ONCE = 10


@dataclass(frozen=True, slots=True)
class Claim:
    """Begin these jobs. Sent: the jobs that have begun. Others may have done some, or a pause may hold them."""

    ids: Sequence[str]
    longest_seconds: float | None = None  # longer jobs are left
    suspects: bool = False  # also jobs whose last worker died with them
    caps: Sequence[str] = ()  # begin the next jobs that these hold, too
    places: int = 1  # at most this many of them


@dataclass(frozen=True, slots=True)
class Run:
    """Run the code of these jobs. Sent: nothing."""

    jobs: Sequence[ClaimedJob]


@dataclass(frozen=True, slots=True)
class FindLeft:
    """Find those of these jobs that still wait. Sent: these jobs."""

    ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class Hold:
    """Hold those of these jobs that a cap or rate has no room for. Sent: those that still wait."""

    ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class FindDue:
    """Find queued jobs of the same lane. Sent: those whose messages are late, lost, or with a worker without room."""

    most: int


@dataclass(frozen=True, slots=True)
class FindHeld:
    """Find caps and rates that hold jobs. Sent: these, and in how many seconds a job may begin; None: none may."""

    caps: Sequence[str]
    longest_seconds: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait until a job ends, or this instant. Sent: those that have ended."""

    until: float


@dataclass(frozen=True, slots=True)
class Record:
    """Record these ends, and publish what follows. Sent: whether there are caps or rates."""

    ends: Sequence[Ended]


@dataclass(frozen=True, slots=True)
class Renew:
    """Renew the leases of all running jobs. Sent: nothing."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Report that a job has ended; `seconds` is how long its runner was busy with it."""

    job: ClaimedJob
    seconds: float
    outcome: Any  # for the driver: what it records and publishes
    hung: bool = False  # it was given up, and its runner is still busy with it


Want = Claim | Run | Hold | FindLeft | FindHeld | FindDue | Wait | Record | Renew


@dataclass(slots=True)
class Core:
    """Plan one invocation. Groups outlive it: they know how long their jobs take."""

    messages: Mapping[str, str]  # a job's id, and its type as its message has it
    group_of: Callable[[str], TypeGroup]
    slots: int
    ends_at: float
    clock: Callable[[], float]
    hand: dict[str, deque[str]] = field(default_factory=dict)  # by type: the ids that have not been claimed
    suspects: deque[str] = field(default_factory=deque)
    left: list[str] = field(default_factory=list)  # queued jobs that there is no time for
    held: dict[str, float] = field(default_factory=dict)  # caps and rates: when the next of their jobs may begin
    for_others: set[str] = field(default_factory=set)  # those of them whose next job is too long for the time left
    at_work: dict[tuple[str, str], TypeGroup] = field(default_factory=dict)
    ends: list[Ended] = field(default_factory=list)
    begun: bool = False  # any job
    alone: bool = False  # a suspect is at work
    stopping: bool = False  # nothing more begins
    record_at: float = 0.0
    beat_at: float = 0.0
    claim_at: float = 0.0
    take_up_at: float = 0.0

    def run(self) -> Generator[Want, Any, None]:
        for id_, job_type in self.messages.items():
            self.hand.setdefault(job_type, deque()).append(id_)
        self.beat_at = self.clock() + BEAT_SECONDS
        try:
            yield from self._work()
        finally:  # after a driver's error, too: groups outlive the invocation
            for group in self.at_work.values():
                group.at_work -= 1
        self._leave([id_ for ids in self.hand.values() for id_ in ids])
        self._leave(self.suspects)

    def _work(self) -> Generator[Want, Any, None]:
        while True:
            yield from self._begin()
            if self.at_work:
                yield from self._wait_for_ends()
                continue
            yield from self._record()
            if self._may_begin:
                continue
            if not self._may_begin_soon:
                return
            yield Wait(min(self.held.values()))

    def _wait_for_ends(self) -> Generator[Want, Any, None]:
        for one in (yield Wait(self._next_instant())):
            self._take_end(one)
        if self.ends and (len(self.ends) >= RECORD_AT_MOST or self.clock() >= self.record_at):
            yield from self._record()
        if self.clock() >= self.beat_at:
            self.beat_at = self.clock() + BEAT_SECONDS
            yield Renew()

    def _leave(self, ids: Iterable[str]) -> None:
        """Note jobs to be sent again. Jobs that were taken up have messages of their own."""
        self.left += [id_ for id_ in ids if id_ in self.messages]

    # ---- beginning

    @property
    def _has_time(self) -> bool:
        return not self.stopping and self.clock() < self.ends_at

    @property
    def _may_begin(self) -> bool:
        """Return whether jobs wait, or may be found, that there is time for."""
        return self._has_time and bool(self.hand or self.suspects or self._next_cap() or self._may_take_up)

    @property
    def _may_begin_soon(self) -> bool:
        """Return whether a held job may begin so soon that a message would come later."""
        soon = self.clock() + WAIT_FOR_HELD_SECONDS
        return self._has_time and any(at <= soon for at in self.held.values())

    def _begin(self) -> Generator[Want, Any, None]:
        while self._may_begin and not self.alone:
            step = self._next_step()
            if step is None:
                return
            yield from step

    def _next_step(self) -> Generator[Want, Any, None] | None:
        if (cap := self._next_cap()) is not None:
            return self._begin_held(cap)
        if self.hand:
            wanted = self._choose()
            return self._claim(wanted) if wanted else None
        if self.suspects:
            return None if self.at_work else self._begin_alone(self.suspects.popleft())
        return self._take_up()

    @property
    def _may_take_up(self) -> bool:
        return self.clock() >= self.take_up_at and len(self.at_work) < self.slots

    def _take_up(self) -> Generator[Want, Any, None]:
        """Take up other jobs of the lane, if there is room left."""
        self.take_up_at = self.clock() + TAKE_UP_EVERY_SECONDS
        due: list[Due] = yield FindDue(min(TAKE_UP_AT_MOST, self.slots - len(self.at_work)))
        for job in due:
            if job.suspect:
                self.suspects.append(job.id)
            else:
                self.hand.setdefault(job.job_type, deque()).append(job.id)

    def _choose(self) -> list[str]:
        """Take from the hand as many of each type as there is room for."""
        wanted: list[str] = []
        early = bool(self.at_work) and self.clock() < self.claim_at
        for job_type, ids in list(self.hand.items()):
            group = self.group_of(job_type)
            room = group.room
            if not group.is_short:
                room = min(room, self.slots - len(self.at_work) - len(wanted))
            if early and room * 2 < group.limit:
                continue
            wanted += [ids.popleft() for _ in range(min(room, len(ids)))]
            if not ids:
                del self.hand[job_type]
        return wanted

    def _next_cap(self) -> str | None:
        """Return a cap whose next job may begin, if there is a place for it."""
        now = self.clock()
        due = (cap for cap, at in self.held.items() if at <= now and self._places_for(cap) > 0)
        return next(due, None)

    def _places_for(self, cap: str) -> int:
        free = self.slots - len(self.at_work)
        kind, _, key = cap.partition(":")
        return min(free, self.group_of(key).room) if kind == "type" else min(free, HELD_AT_ONCE)

    def _begin_held(self, cap: str) -> Generator[Want, Any, None]:
        del self.held[cap]
        jobs = yield Claim((), self._longest, caps=(cap,), places=self._places_for(cap))
        yield from self._run(jobs)
        # No job: others were quicker, or the next one is too long for the time left.
        yield from self._look_for_held((cap,), after=0.0 if jobs else LOOK_AGAIN_SECONDS)

    def _look_for_held(self, caps: Sequence[str], after: float = 0.0) -> Generator[Want, Any, None]:
        found: list[Held] = yield FindHeld(caps, self._longest)
        now = self.clock()
        for one in found:
            if one.seconds is not None and one.fits:
                self.held[one.cap] = now + max(after, one.seconds)
            elif one.seconds is not None:
                self.for_others.add(one.cap)

    def _claim(self, wanted: Sequence[str]) -> Generator[Want, Any, None]:
        jobs: list[ClaimedJob] = yield Claim(wanted, self._longest)
        if jobs and jobs[0].id not in self.messages:  # it was taken up, and there may be more
            self.take_up_at = self.clock()
        yield from self._run(jobs)
        if len(jobs) < len(wanted):
            got = {job.id for job in jobs}
            yield from self._look_after([id_ for id_ in wanted if id_ not in got])
        self.claim_at = self.clock() + CLAIM_EVERY_SECONDS

    def _look_after(self, missing: Sequence[str]) -> Generator[Want, Any, None]:
        """Handle jobs that a claim did not begin: done, held, suspects, or too long for the time left.

        The first job of an invocation begins in any case: a function with little time would otherwise pass its jobs on
        for ever.
        """
        found: list[Left] = yield FindLeft(missing)
        caps = {one.held_by for one in found if one.held_by is not None}
        if caps:
            yield from self._look_for_held(sorted(caps))
            if not caps & self.held.keys():
                yield from self._hold_alike(missing[0])
        waiting = {one.id: one.suspect for one in found if one.held_by is None}
        self.suspects += [id_ for id_ in missing if waiting.get(id_)]
        long = [id_ for id_ in missing if waiting.get(id_) is False]
        if long and not self.begun:
            yield from self._run((yield Claim([long.pop(0)])))
        self._leave(long)

    def _hold_alike(self, id_: str) -> Generator[Want, Any, None]:
        """Hold other jobs of the type that the same cap holds, all at once, and not with a claim for each few."""
        ids = self.hand.get(self.messages.get(id_, ""), deque())
        some = list(islice(ids, RECORD_AT_MOST))
        if some:
            found: list[Left] = yield Hold(some)
            held = {one.id for one in found if one.held_by is not None}
            for _ in some:
                if (first := ids.popleft()) not in held:
                    ids.append(first)
            if not ids:
                del self.hand[self.messages[id_]]

    def _begin_alone(self, id_: str) -> Generator[Want, Any, None]:
        """Begin a job whose last worker died with it, with no other job beside it."""
        jobs: list[ClaimedJob] = yield Claim([id_], self._longest if self.begun else None, suspects=True)
        self.alone = bool(jobs)
        yield from self._run(jobs)
        if not jobs:
            found: list[Left] = yield FindLeft([id_])
            self._leave(one.id for one in found if one.held_by is None)

    @property
    def _longest(self) -> float:
        return (self.ends_at - self.clock()) / LEAST_SHARE

    def _run(self, jobs: Sequence[ClaimedJob]) -> Generator[Want, Any, None]:
        for job in jobs:
            group = self.group_of(job.job_type)
            group.at_work += 1
            self.at_work[job.id, job.token] = group
            self.begun = True
        if jobs:
            yield Run(jobs)

    # ---- ending

    def _take_end(self, one: Ended) -> None:
        group = self.at_work.pop((one.job.id, one.job.token), None)
        if group is None:  # it was given up
            return
        group.at_work -= 1
        group.learn(one.seconds)
        self.alone = False
        self.stopping |= one.hung
        if not self.ends:
            self.record_at = self.clock() + RECORD_AFTER_SECONDS
        if one.job.capped:  # others wait for its place
            self.record_at = 0.0
        self.ends.append(one)

    def _record(self) -> Generator[Want, Any, None]:
        ends, self.ends = self.ends, []
        if ends and (yield Record(ends)):
            yield from self._look_for_held(sorted({cap for one in ends for cap in one.job.cap_names}))

    def _next_instant(self) -> float:
        instants = [self.beat_at]
        if self.ends:
            instants.append(self.record_at)
        if self._has_time and not self.alone:
            if self.hand and self.clock() < self.claim_at:
                instants.append(self.claim_at)
            instants += [at for cap, at in self.held.items() if self._places_for(cap) > 0]
            if not (self.hand or self.suspects) and len(self.at_work) < self.slots:
                instants.append(self.take_up_at)
        return min(instants)
