"""Run 800 jobs a second for two minutes while another transaction stays open, against the same without one.

Such a transaction keeps its snapshot: nothing that died since is vacuumed, and claims and sweeps read past it. A batch
is submitted each tenth of a second and worked off at once; dispatch_jobs runs each half minute. Batches that fall
behind are worked off late, which lowers the throughput. At the end the transaction is over and all must be done.
"""

from __future__ import annotations

from time import perf_counter, sleep

import psycopg

from bench.ratio import Ratio
from bench.stage.job_plant import JobPlant, events_of, job_plant

RATE, SECONDS, CLEAN_SECONDS = 800, 120, 40
TICK = 0.1
SWEEP_EACH = 30.0
LEFT = "SELECT count(*) FROM signalbox.jobs WHERE completed_at IS NULL"


def measure(dsn: str) -> list[Ratio]:
    with job_plant(dsn) as plant:
        clean = _throughput(plant, CLEAN_SECONDS, "clean")
        with psycopg.connect(plant.dsn) as other:
            other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            other.execute("SELECT count(*) FROM signalbox.jobs")
            beside = _throughput(plant, SECONDS, "beside an open transaction")
        plant.sweep()
        row = plant.db.execute(LEFT).fetchone()
        if row != (0,):
            raise RuntimeError(f"{row and row[0]} jobs are left")
    what = f"seconds for {RATE} jobs beside a transaction that is open for {SECONDS} s"
    return [Ratio(what, "without one", RATE / beside * 1000, RATE / clean * 1000, 1 / 0.9)]


def _throughput(plant: JobPlant, seconds: float, how: str) -> float:
    """Return the jobs a second that were done when the time was over."""
    size, jobs, swept, slowest, sweep = round(RATE * TICK), 0, perf_counter(), 0.0, 0.0
    began = perf_counter()
    while (now := perf_counter()) - began < seconds:
        plant.work(events_of(plant.submit("do_nothing", size), size))
        jobs += size
        slowest = max(slowest, perf_counter() - now)
        if perf_counter() - swept > SWEEP_EACH:
            swept = perf_counter()
            plant.sweep()
            sweep = perf_counter() - swept
        sleep(max(0.0, jobs / RATE - (perf_counter() - began)))
    rate = jobs / (perf_counter() - began)
    print(f"{how}: {rate:,.0f} jobs/s, slowest batch {slowest * 1000:.0f} ms, last sweep {sweep * 1000:.0f} ms")
    return rate
