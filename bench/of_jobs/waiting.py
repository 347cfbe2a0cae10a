"""Run jobs that only wait, as plain and as `async def` functions, beside those of procrastinate and pgqueuer.

Each is one process, on one server and in one run: 400 jobs at once in the worker and in pgqueuer, 100 in procrastinate.
SQS and the submits are left out. The worker's memory is measured in a process per figure: `python -m bench.waiting DSN
SLOTS` works off what is queued and prints its peak.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import psycopg

from bench.job_types import AT_ONCE
from bench.peers.peer import peer
from bench.ratio import Ratio, alternate
from bench.stage.job_plant import JobPlant, events_of, job_plant, start_worker
from signalbox.worker.usage import peak_memory_mb

JOBS, PEERS_JOBS, MEMORY_JOBS = 20_000, 4_000, 2_000
EVENT, ROUNDS = 10_000, 3
WAIT_SECONDS = 0.2
JOB_TYPES = ("wait_awhile", "wait_on_loop")  # a plain function, and an async def
# Batch size, queue managers, and jobs at once in each.
PGQUEUER_WAYS = [f"{batch} 1 {AT_ONCE}" for batch in (25, 50, 200)]
PROCRASTINATE_WAY = "100"
PGQUEUER, PROCRASTINATE = f"pgqueuer, {AT_ONCE} at once", f"procrastinate, concurrency {PROCRASTINATE_WAY}"
# A shell stands between the two: a process inherits the peak of the process that starts it.
SHELL = ("sh", "-c", '"$0" "$@" & wait $!')


def measure(dsn: str) -> list[Ratio]:
    with (
        job_plant(dsn, AT_ONCE) as plant,
        peer(dsn, "pgqueuer", PEERS_JOBS, WAIT_SECONDS) as pgqueuer,
        peer(dsn, "procrastinate", PEERS_JOBS, WAIT_SECONDS) as procrastinate,
    ):
        way = pgqueuer.fastest(PGQUEUER_WAYS)
        plain, on_loop, theirs, slower = alternate(
            ROUNDS,
            *(_worker(plant, job_type) for job_type in JOB_TYPES),
            pgqueuer.draining(way),
            procrastinate.draining(PROCRASTINATE_WAY),
        )
        for job_type in JOB_TYPES:
            for slots in (100, AT_ONCE):
                print(f"{job_type}: {_peak_mb(plant, job_type, slots)} MB of memory with {slots} jobs at work")
    took = {
        "plain functions": 1000 * plain / JOBS,
        "async def": 1000 * on_loop / JOBS,
        PGQUEUER: 1000 * theirs / PEERS_JOBS,
        PROCRASTINATE: 1000 * slower / PEERS_JOBS,
    }
    for what, ms in took.items():
        print(f"jobs that wait 200 ms, {what}: {1e6 / ms:,.0f} jobs/s")
    what = "1,000 jobs that wait 200 ms, async def"
    return [
        Ratio(what, PROCRASTINATE, took["async def"], took[PROCRASTINATE], 1 / 2),
        Ratio(what, PGQUEUER, took["async def"], took[PGQUEUER]),
    ]


def _worker(plant: JobPlant, job_type: str) -> Callable[[], float]:
    def once() -> float:
        ids = plant.submit(job_type, JOBS, seconds=WAIT_SECONDS)
        took = plant.work(events_of(ids, EVENT, job_type))
        plant.require_completed(ids)
        return took

    return once


def _peak_mb(plant: JobPlant, job_type: str, slots: int) -> int:
    ids = plant.submit(job_type, MEMORY_JOBS, seconds=WAIT_SECONDS)
    command = [*SHELL, sys.executable, "-m", "bench.of_jobs.waiting", plant.dsn, str(slots)]
    peak = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    plant.require_completed(ids)
    return int(peak.split()[-1])  # its log comes before


def main(dsn: str, slots: int) -> None:
    worker = start_worker(dsn, slots)
    with psycopg.connect(dsn, autocommit=True) as db:
        queued = db.execute("SELECT id::text, job_type FROM signalbox.jobs WHERE status = 'queued'").fetchall()
        JobPlant(dsn, worker, db).work(events_of([id_ for id_, _ in queued], EVENT, queued[0][1]))
    worker.close()
    print(peak_memory_mb())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
