"""Measure claims and ends among 2,000,000 finished jobs while prune_jobs deletes 200,000, against the same without it.

Batches of 100 run one after the other, on one connection, while the task runs on another. Attempts lie in ten
partitions, as after weeks of nights: those of the old jobs are dropped. The time of the pruning is printed, too.
"""

from __future__ import annotations

import io
import logging
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from datetime import UTC, datetime, timedelta
from statistics import quantiles
from time import perf_counter

from bench.ratio import Ratio
from bench.stage.job_plant import JobPlant, job_plant
from signalbox.invocation import Invocation
from signalbox.jobs.end_record import EndRecord
from signalbox.jobs.verdict import COMPLETED
from signalbox.worker.lease import LeaseClaim, finish

FINISHED, OLD, BATCH = 1_800_000, 200_000, 100
SECONDS, WEEKS = 10, 7
PARTITION = "SELECT signalbox.add_partition('job_executions', %s, %s)"
FILL = """
    INSERT INTO signalbox.jobs (
        id, job_type, lane, status, payload, attempts, executions, max_attempts, timeout_ms, created_at, queued_at,
        started_at, completed_at, updated_at
    )
    SELECT overlay(gen_random_uuid()::text PLACING left(signalbox.first_id(at)::text, 14) FROM 1 FOR 14)::uuid,
        'do_nothing', 'normal', 'completed', jsonb_build_object('number', n), 1, 1, 3, 300000, at, at, at, at, at
    FROM generate_series(1, %(number)s) AS n
    CROSS JOIN LATERAL (SELECT %(since)s::timestamptz + n * %(days)s * interval '1 d' / %(number)s AS at) AS spread
"""
ATTEMPTS = """
    INSERT INTO signalbox.job_executions (
        job_id, attempt_number, job_type, lane, status, lease_token, worker_id, started_at, completed_at
    )
    SELECT id, 1, job_type, lane, 'completed', id, 'bench', started_at, completed_at FROM signalbox.jobs
"""


def measure(dsn: str) -> list[Ratio]:
    with job_plant(dsn) as plant:
        _fill(plant)
        alone = _work(plant, _for_seconds(SECONDS))
        with ThreadPoolExecutor(1) as pool:
            pruning = pool.submit(_prune, plant)
            beside = _work(plant, pruning.done)
            took, rows = pruning.result()
    print(f"pruning {OLD:,} jobs beside claims: {took:.1f} s, {rows:,} rows")
    for what, times in (("alone", alone), ("beside the pruning", beside)):
        print(f"claim and end {what}: {_rate(times):,.0f} jobs/s, p95 of a batch {_p95(times):.1f} ms")
    what = f"claim and end of {BATCH} jobs among {FINISHED + OLD:,}, beside a pruning of {OLD:,}"
    return [Ratio(what, "without it", BATCH / _rate(beside) * 1000, BATCH / _rate(alone) * 1000, 2.0)]


def _fill(plant: JobPlant) -> None:
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for week in range(WEEKS):
        ends = today - week * timedelta(days=7)
        plant.db.execute(PARTITION, (ends - timedelta(days=7), ends))
    for number, since, days in ((FINISHED, 29, 29), (OLD, 41, 5)):
        plant.db.execute(FILL, {"number": number, "since": today - timedelta(days=since), "days": days})
    plant.db.execute(ATTEMPTS)
    plant.db.execute("VACUUM (ANALYZE) signalbox.jobs, signalbox.job_executions")
    plant.db.execute("CHECKPOINT")


def _for_seconds(seconds: float) -> Callable[[], bool]:
    began = perf_counter()
    return lambda: perf_counter() - began > seconds


def _work(plant: JobPlant, is_over: Callable[[], bool]) -> list[float]:
    """Return the seconds of each batch until it is over, and of twenty batches at least."""
    times: list[float] = []
    while len(times) < 20 or not is_over():
        ids = plant.submit("do_nothing", BATCH)
        began = perf_counter()
        jobs = LeaseClaim(str(uuid.uuid4()), "bench").begin(plant.db, ids)
        changed = finish(plant.db, [EndRecord(job.id, job.token, COMPLETED) for job in jobs])
        times.append(perf_counter() - began)
        if len(changed) != BATCH:
            raise RuntimeError(f"{len(changed)} of {BATCH} jobs were finished")
    return times


def _prune(plant: JobPlant) -> tuple[float, int]:
    logging.getLogger(plant.engine.resources.settings.stack).setLevel("WARNING")
    began = perf_counter()
    with redirect_stdout(io.StringIO()):
        answer = plant.engine.run_task({"task": "prune_jobs"}, Invocation.of("bench", datetime.now(UTC), 3600))
    if answer.get("more") or answer["items"] < 2 * OLD:
        raise RuntimeError(f"the pruning is not done: {answer}")
    return perf_counter() - began, int(answer["items"])


def _rate(times: list[float]) -> float:
    return BATCH * len(times) / sum(times)


def _p95(times: list[float]) -> float:
    return quantiles(times, n=20)[-1] * 1000
