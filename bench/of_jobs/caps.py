"""Measure what caps cost: the share of a cap that is used, a rate's error, and what held jobs cost another tenant's.

One worker is handed what its lane holds as it falls due, with dispatch_jobs each minute. SQS itself and the submits are
left out.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta

from bench.job_types import AT_ONCE
from bench.ratio import Ratio, alternate, timed
from bench.stage.job_plant import MOST_RECORDS, JobPlant, events_of, job_plant
from signalbox.operate.audit import Actor
from signalbox.operate.caps import Cap, CapTarget, set_cap
from signalbox.worker.lease import LeaseClaim

CAPS = {1: 100, 10: 1_000, 100: 10_000}  # jobs for each
WAIT_SECONDS = 0.1
RATE, RATE_SECONDS = 20, 60
HELD, HELD_CAP, BESIDE = 300_000, 10, 2_000
ROUNDS = 3
PATIENCE = 3  # multiplies the expected time


def measure(dsn: str) -> list[Ratio]:
    return [*(_use_of_cap(dsn, cap) for cap in CAPS), _error_of_rate(dsn), _cost_of_held(dsn)]


def _use_of_cap(dsn: str, cap: int) -> Ratio:
    with job_plant(dsn, AT_ONCE) as plant:
        _set(plant, Cap(max_running=cap))
        ids = plant.submit("wait_awhile", CAPS[cap], tenant="capped", seconds=WAIT_SECONDS)
        took = plant.work_off(ids, "wait_awhile", PATIENCE * CAPS[cap] * WAIT_SECONDS / cap)
        done = plant.count_completed(ids)
    used = done * WAIT_SECONDS / (cap * took)
    print(f"a cap of {cap}: {done:,} of {CAPS[cap]:,} jobs in {took:.1f} s, used to {used:.1%}", flush=True)
    what = f"a job of {1000 * WAIT_SECONDS:.0f} ms under a cap of {cap}: its share of the cap's time"
    return Ratio(what, "its own time", 1000 * WAIT_SECONDS / max(used, 1e-6), 1000 * WAIT_SECONDS, 1 / 0.9)


def _error_of_rate(dsn: str) -> Ratio:
    with job_plant(dsn, AT_ONCE) as plant:
        _set(plant, Cap(rate=RATE, per_seconds=1))
        ids = plant.submit("do_nothing", RATE * RATE_SECONDS, tenant="capped")
        took = plant.work_off(ids, "do_nothing", PATIENCE * RATE_SECONDS)
        done = plant.count_completed(ids)
    rate = done / took
    print(f"a rate of {RATE} a second: {done:,} of {len(ids):,} jobs in {took:.1f} s, {rate:.2f} a second", flush=True)
    return Ratio(f"the error of a rate over {RATE_SECONDS} s", "5 %", 100 * abs(rate / RATE - 1), 5, 1.0, "%")


def _cost_of_held(dsn: str) -> Ratio:
    with ExitStack() as stack:
        held, bare = (stack.enter_context(job_plant(dsn, AT_ONCE)) for _ in range(2))
        _hold(held)
        ours, alone = alternate(ROUNDS, _beside(held), _beside(bare))
    return Ratio(f"{BESIDE:,} no-op jobs beside {HELD:,} that a cap holds", "without these", ours, alone, 1.2)


def _hold(plant: JobPlant) -> None:
    """Have another worker run as many as the cap allows, and hand this one the rest."""
    _set(plant, Cap(max_running=HELD_CAP))
    running = plant.submit("do_nothing", HELD_CAP, tenant="capped")
    LeaseClaim(str(uuid.uuid4()), "elsewhere", life=timedelta(hours=1)).begin(plant.db, running)
    plant.work(events_of(plant.submit("do_nothing", HELD, tenant="capped"), MOST_RECORDS))
    plant.db.execute("VACUUM (ANALYZE) signalbox.jobs, signalbox.job_executions")
    plant.db.execute("CHECKPOINT")


def _beside(plant: JobPlant) -> Callable[[], float]:
    def once() -> float:
        ids = plant.submit("do_nothing", BESIDE, tenant="other")
        took = timed(plant.sweep)() + plant.work_off(ids, "do_nothing", PATIENCE * 60)
        plant.require_completed(ids)
        return took

    return once


def _set(plant: JobPlant, cap: Cap) -> None:
    set_cap(plant.db, plant.engine.resources.job_types, CapTarget("tenant", "capped"), cap, by=Actor("bench"))
