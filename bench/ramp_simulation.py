"""A lane under load, simulated: how far jobs pile up, how long they wait, and what holds them back.

Batch size, window, concurrency, memory, time-out and visibility are the template's; how long a batch takes is what
`footprint` measured. Jobs come as a stream at a rate or all at once; time goes in twentieths of a second, and each
batch is an event. Leaves out failures, retries and what jobs do to the database beside the engine's own statements.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bench.ramp_limits import Limits
from local.cost.figures import figures
from local.cost.load import batch_ms
from local.cost.stack import Function, Lane, Stack

TICK = 0.05
STREAM_SECONDS, HORIZON_SECONDS = 180.0, 3_600.0
MARGIN_SECONDS = 10.0  # Settings.budget_margin_seconds: what the worker keeps of its time


@dataclass(frozen=True, slots=True)
class Scene:
    """What is simulated: so many jobs a second for so long, and so many at the very beginning."""

    lane: Lane
    worker: Function
    visibility_seconds: float
    job_ms: float
    job_server_ms: float = 0.0  # of the database's processor, for the job's own statements
    submit_server_ms: float = figures()["submit_server_ms"]
    rate: float = 0.0
    seconds: float = STREAM_SECONDS
    burst: int = 0
    events: str = "all"
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Ramp:
    """What became of it."""

    arrived: int
    done: int
    backlog: int  # at the end
    most_backlog: int
    most_workers: int
    most_in_hand: int
    growth: tuple[tuple[float, int], ...]  # (seconds, workers), whenever there were more than ever before
    waits: Mapping[int, int]  # jobs by hundredths of a second from submit to start
    drained_seconds: float | None  # from the last arrival to the last end; None: not within the horizon
    limited_by: str
    mean_in_system: float
    mean_sojourn: float
    seconds: float
    within_visibility: bool

    def workers_at(self, seconds: float) -> int:
        """The most of them until then."""
        return max([number for at, number in self.growth if at <= seconds], default=0)

    def wait(self, share: float) -> float:
        """Seconds that this share of the jobs waited at most."""
        left = share * sum(self.waits.values())
        for hundredths in sorted(self.waits):
            left -= self.waits[hundredths]
            if left <= 0:
                return hundredths / 100
        return 0.0


@dataclass(slots=True)
class _State:
    """Of the simulation as it goes."""

    scene: Scene
    now: float = 0.0
    backlog: deque[list[float]] = field(default_factory=deque)  # [arrived at, jobs]
    waiting: int = 0
    busy: list[tuple[float, int]] = field(default_factory=list)  # (ends at, jobs)
    in_hand: int = 0
    environments: int = 0
    allowed: float = 0.0
    left: bool = False  # whole batches, when all that could had begun
    started: float = 0.0  # environments that the function may still start
    database_ms: float = 0.0  # that the cores have left
    arrived: int = 0
    done: int = 0
    most_backlog: int = 0
    growth: list[tuple[float, int]] = field(default_factory=list)
    most_in_hand: int = 0
    area: float = 0.0
    sojourn: float = 0.0
    longest: float = 0.0
    last_end: float = 0.0
    waits: Counter[int] = field(default_factory=Counter)
    held: Counter[str] = field(default_factory=Counter)


def simulate(scene: Scene) -> Ramp:
    """From an idle lane until it is idle again."""
    state = _State(scene, allowed=scene.limits.first_batches, started=scene.limits.function_a_second * 10)
    horizon = scene.seconds + HORIZON_SECONDS
    while state.now < horizon and (state.now <= scene.seconds or state.waiting or state.busy):
        _arrive(state)
        _finish(state)
        _refill(state)
        _start(state)
        state.area += (state.waiting + state.in_hand) * TICK
        state.most_backlog = max(state.most_backlog, state.waiting)
        state.now += TICK
    return _result(state)


def _arrive(state: _State) -> None:
    scene = state.scene
    due = scene.burst + int(scene.rate * min(state.now + TICK, scene.seconds) + 1e-6)
    if due > state.arrived:
        state.backlog.append([state.now, due - state.arrived])
        state.waiting += due - state.arrived
        # Half of it at most: where submits want more, they wait for each other, and workers still get their turn.
        state.database_ms -= min((due - state.arrived) * scene.submit_server_ms, scene.limits.cores * 1000 * TICK / 2)
        state.arrived = due


def _finish(state: _State) -> None:
    while state.busy and state.busy[0][0] <= state.now:
        ended, jobs = heapq.heappop(state.busy)
        state.in_hand -= jobs
        state.done += jobs
        state.last_end = ended


def _refill(state: _State) -> None:
    limits = state.scene.limits
    if state.left:
        state.allowed = min(limits.mapping, state.allowed + limits.more_a_minute / 60 * TICK)
    if not state.waiting and not state.busy:
        state.allowed = limits.first_batches
    state.started = min(limits.function_a_second * 10.0, state.started + limits.function_a_second * TICK)
    state.database_ms = min(limits.cores * 1000 * TICK, state.database_ms + limits.cores * 1000 * TICK)


def _start(state: _State) -> None:
    """As many batches as are there and may be."""
    batch, window = state.scene.lane.batch_size, state.scene.lane.window_seconds
    state.left = False
    while state.waiting:
        if state.waiting < batch and state.now - state.backlog[0][0] < window - 1e-9:
            return
        jobs = min(batch, state.waiting, fitting(state.scene))
        if (held := _held_by(state, jobs)) is not None:
            state.held[held] += 1
            state.left = True
            return
        _begin(state, jobs)


def _held_by(state: _State, jobs: int) -> str | None:
    """The limit that keeps another batch from beginning."""
    limits, busy = state.scene.limits, len(state.busy)
    reached = {
        "MaximumConcurrency": busy >= state.scene.lane.concurrency,
        "concurrency of the account": busy >= limits.account,
        "the mapping's most": busy >= limits.mapping,
        "connections": busy >= limits.connections,
        "messages in flight": state.in_hand + jobs > limits.in_flight,
        "ramp of the mapping": busy >= int(state.allowed),
        "ramp of the function": busy >= state.environments and state.started < 1,
        "database": state.database_ms <= 0,
    }
    return next((name for name, is_so in reached.items() if is_so), None)


def _begin(state: _State, jobs: int) -> None:
    scene, known = state.scene, figures()
    took = batch_ms(scene.worker, jobs, scene.job_ms, scene.events) / 1000
    if len(state.busy) >= state.environments:
        state.environments += 1
        state.started -= 1
        took += known["init_ms"] / 1000
    state.database_ms -= database_ms(scene, jobs)
    _take(state, jobs, took)
    heapq.heappush(state.busy, (state.now + took, jobs))
    state.in_hand += jobs
    state.longest = max(state.longest, took)
    state.most_in_hand = max(state.most_in_hand, state.in_hand)
    if not state.growth or len(state.busy) > state.growth[-1][1]:
        state.growth.append((state.now, len(state.busy)))


def database_ms(scene: Scene, jobs: int) -> float:
    """Of its processor, for a batch."""
    known = figures()
    return known["batch_server_ms"] + jobs * (known["job_server_ms"] + scene.job_server_ms)


def _take(state: _State, jobs: int, took: float) -> None:
    """The oldest; a job begins, in the mean, in the middle of its batch."""
    state.waiting -= jobs
    while jobs:
        cohort = state.backlog[0]
        number = min(jobs, int(cohort[1]))
        waited = state.now - cohort[0]
        state.waits[round((waited + took / 2) * 100)] += number
        state.sojourn += number * (waited + took)
        cohort[1] -= number
        jobs -= number
        if not cohort[1]:
            state.backlog.popleft()


def fitting(scene: Scene) -> int:
    """Jobs that a worker has time for; the others it gives back, and they go on waiting."""
    each = max(batch_ms(scene.worker, 2, scene.job_ms, "none") - batch_ms(scene.worker, 1, scene.job_ms, "none"), 0.001)
    return max(1, int((scene.worker.timeout_seconds - MARGIN_SECONDS) * 1000 / each))


def _result(state: _State) -> Ramp:
    jobs = max(1, state.done + state.in_hand)
    finished = not state.waiting and not state.busy
    held = max(state.held, key=lambda name: state.held[name]) if state.held else "nothing"
    return Ramp(
        arrived=state.arrived,
        done=state.done,
        backlog=state.waiting + state.in_hand,
        most_backlog=state.most_backlog,
        most_workers=state.growth[-1][1] if state.growth else 0,
        most_in_hand=state.most_in_hand,
        growth=tuple(state.growth),
        waits=state.waits,
        drained_seconds=max(0.0, state.last_end - state.scene.seconds) if finished else None,
        limited_by=held,
        mean_in_system=state.area / state.now,
        mean_sojourn=state.sojourn / jobs,
        seconds=state.now,
        within_visibility=state.longest < state.scene.visibility_seconds,
    )


def scene_of(stack: Stack, lane: str, **given: Any) -> Scene:
    """The template's lane under a load."""
    mapping = stack.lane(lane)
    visibility = stack.queues[mapping.queue].visibility_seconds
    scene = Scene(mapping, stack.functions[mapping.function], visibility, 0.0, events=stack.events)
    return replace(scene, **given)
