"""Run no-op jobs through the worker, and through procrastinate and pgqueuer, on one server and in one run.

The worker keeps its full history, a job and an attempt each, and is handed events as SQS would hand them. Left out are
SQS itself, with its delivery and the deletion of messages, and the submits of all three. Each is one process, in the
fastest way that it supports: pgqueuer with asyncpg on uvloop, drained as by its own benchmark tool; procrastinate with
asynchronous tasks and no listener.
"""

from __future__ import annotations

from collections.abc import Callable

from bench.peers.peer import peer
from bench.ratio import Ratio, alternate
from bench.stage.job_plant import JobPlant, events_of, job_plant, start_worker
from bench.stage.round_trips import count_round_trips

ROUNDS = 5
SIZES = {10: 1_000, 1_000: 20_000, 10_000: 20_000}  # records of an event: jobs
PGQUEUER_JOBS, PROCRASTINATE_JOBS = 20_000, 500
# pgqueuer: batch size, queue managers and jobs at once (0: no limit). procrastinate: concurrency.
PGQUEUER_WAYS = [f"{batch} {managers} 0" for batch in (10, 100, 1000) for managers in (1, 5)]
PROCRASTINATE_WAYS = ["1", "5", "10", "20", "50"]


def measure(dsn: str) -> list[Ratio]:
    with (
        job_plant(dsn) as plant,
        peer(dsn, "pgqueuer", PGQUEUER_JOBS) as pgqueuer,
        peer(dsn, "procrastinate", PROCRASTINATE_JOBS) as procrastinate,
    ):
        trips = {size: _round_trips(plant, size) for size in SIZES}
        batch, concurrency = pgqueuer.fastest(PGQUEUER_WAYS), procrastinate.fastest(PROCRASTINATE_WAYS)
        *ours, theirs, slower = alternate(
            ROUNDS,
            *(_worker(plant, size) for size in SIZES),
            pgqueuer.draining(batch),
            procrastinate.draining(concurrency),
        )
    took = {size: 1000 * ms / SIZES[size] for size, ms in zip(SIZES, ours, strict=True)}
    pgqueuer_took, procrastinate_took = 1000 * theirs / PGQUEUER_JOBS, 1000 * slower / PROCRASTINATE_JOBS
    managers = "batch size {}, {} queue managers".format(*batch.split())
    for size in SIZES:
        print(f"no-op jobs, events of {size}: {1e6 / took[size]:,.0f} jobs/s, {trips[size]} round trips a batch")
    print(f"pgqueuer's drain, {managers}: {1e6 / pgqueuer_took:,.0f} jobs/s")
    print(f"procrastinate, concurrency {concurrency}: {1e6 / procrastinate_took:,.0f} jobs/s")
    what = "1,000 no-op jobs, in events of 1,000"
    return [
        Ratio(what, f"pgqueuer ({managers})", took[1_000], pgqueuer_took, 1.0),
        Ratio(what, f"procrastinate (concurrency {concurrency})", took[1_000], procrastinate_took, 1 / 20),
    ]


def _worker(plant: JobPlant, size: int) -> Callable[[], float]:
    def once() -> float:
        ids = plant.submit("do_nothing", SIZES[size])
        took = plant.work(events_of(ids, size))
        plant.require_completed(ids)
        return took

    return once


def _round_trips(plant: JobPlant, size: int) -> int:
    with count_round_trips(plant.dsn) as trips:
        worker = start_worker(trips.dsn)
        worker.resources.database.connection()
        before = trips.number
        JobPlant(plant.dsn, worker, plant.db).work(events_of(plant.submit("do_nothing", size), size))
        counted = trips.number - before
        worker.resources.database.close()
    return counted
