"""The simulation of a lane under load obeys what holds for any queue."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.ramp import needs
from bench.ramp_limits import Limits
from bench.ramp_simulation import TICK, Scene, simulate
from local.cost.figures import figures
from local.cost.stack import Function, Lane

WORKER = Function("WorkerFunction", 512, "arm64", 360, traced=True)
scenes = st.builds(
    Scene,
    lane=st.builds(
        Lane,
        queue=st.just("NormalLane"),
        function=st.just("WorkerFunction"),
        batch_size=st.integers(1, 1_000),
        window_seconds=st.integers(0, 2),
        concurrency=st.integers(2, 50),
    ),
    worker=st.just(WORKER),
    visibility_seconds=st.just(2160.0),
    job_ms=st.floats(0, 100),
    rate=st.floats(0, 100),
    seconds=st.just(20.0),
    burst=st.integers(0, 1_000),
    limits=st.builds(
        Limits, cores=st.floats(0.5, 8), connections=st.integers(2, 60), in_flight=st.integers(1_000, 9_000)
    ),
)
quick = settings(max_examples=15, deadline=None)


@quick
@given(scenes)
def test_every_job_is_done_or_still_there(scene: Scene) -> None:
    ramp = simulate(scene)
    assert ramp.arrived == ramp.done + ramp.backlog
    assert ramp.arrived == scene.burst + int(scene.rate * scene.seconds + 1e-6)
    assert (ramp.drained_seconds is not None) == (ramp.backlog == 0)


@quick
@given(scenes)
def test_no_limit_is_ever_exceeded(scene: Scene) -> None:
    ramp = simulate(scene)
    assert ramp.most_workers <= min(scene.lane.concurrency, scene.limits.connections, scene.limits.account)
    assert ramp.most_workers * scene.lane.batch_size >= ramp.most_in_hand
    assert ramp.most_in_hand <= scene.limits.in_flight


@quick
@given(scenes)
def test_jobs_in_the_lane_are_those_that_come_times_the_time_that_each_stays(scene: Scene) -> None:
    """Little's law: over the whole of it, L = λW, but for the last part of a tick in which each is seen."""
    ramp = simulate(scene)
    if ramp.drained_seconds is None or not ramp.done:
        return
    rate = ramp.done / ramp.seconds
    assert ramp.mean_in_system == pytest.approx(rate * ramp.mean_sojourn, rel=0.01, abs=rate * TICK)


@quick
@given(scenes, st.integers(1, 50))
def test_more_concurrency_is_never_slower_for_what_is_there_at_once(scene: Scene, more: int) -> None:
    burst = replace(scene, rate=0.0, burst=max(1, scene.burst), seconds=TICK)
    wider = replace(burst, lane=replace(burst.lane, concurrency=burst.lane.concurrency + more))
    slow, fast = (simulate(one).drained_seconds for one in (burst, wider))
    if slow is not None:
        assert fast is not None
        # Each worker more is one more that starts cold.
        assert fast <= slow + figures()["init_ms"] / 1000 + TICK


def test_what_a_stream_needs_keeps_up_with_it() -> None:
    lane = Lane("NormalLane", "WorkerFunction", 100, 1, 2)
    scene = Scene(lane, WORKER, 2160.0, 100.0, rate=200.0, seconds=120.0)
    tight, wide = simulate(scene), needs(scene).met(scene)
    assert tight.limited_by == "MaximumConcurrency"
    assert tight.drained_seconds is not None
    assert tight.drained_seconds > 60
    assert wide is not None
    kept = simulate(wide)
    assert kept.drained_seconds is not None
    assert kept.drained_seconds < 30
    assert kept.most_workers <= wide.lane.concurrency


def test_concurrency_grows_by_three_hundred_a_minute_from_five() -> None:
    lane = Lane("NormalLane", "WorkerFunction", 1, 0, 1_000)
    scene = Scene(lane, WORKER, 2160.0, 20_000.0, burst=1_000, seconds=30.0, limits=Limits(connections=1_000))
    ramp = simulate(replace(scene, seconds=30.0))
    assert ramp.limited_by == "ramp of the mapping"
    at_twenty = 5 + 20 * 5  # those of the first twenty seconds, in which none has ended
    assert at_twenty - 1 <= ramp.workers_at(20.0) <= at_twenty + 1


@pytest.mark.parametrize(
    ("limits", "named"),
    [
        (Limits(connections=3), "connections"),
        (Limits(account=4), "concurrency of the account"),
        (Limits(in_flight=300), "messages in flight"),
        (Limits(cores=0.01), "database"),
    ],
)
def test_the_limit_that_holds_it_back_is_named(limits: Limits, named: str) -> None:
    lane = Lane("NormalLane", "WorkerFunction", 100, 1, 50)
    scene = Scene(lane, WORKER, 2160.0, 50.0, burst=20_000, seconds=1.0, limits=limits)
    assert simulate(scene).limited_by == named


def test_jobs_that_a_worker_has_no_time_for_wait_for_another() -> None:
    lane = Lane("NormalLane", "WorkerFunction", 100, 1, 2)
    scene = Scene(lane, WORKER, 2160.0, 30_000.0, burst=40, seconds=1.0)
    ramp = simulate(scene)
    assert ramp.done == 40
    assert ramp.within_visibility
    assert ramp.most_in_hand <= 2 * 11  # of thirty seconds each in 350 s
