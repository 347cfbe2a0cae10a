"""Measure a claim and its finish with 1,000,000 jobs in the table, against 1,000: the indexes should make them alike.

The jobs there are completed, with an attempt each, and in the partition that is worked on, which is new in both. Both
tables are vacuumed and analyzed, with their checkpoint done, and both have been read, so that neither has to be fetched
from disk first. SQS and the worker's own part are left out: these are the two statements alone.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import ExitStack
from time import perf_counter

from bench.ratio import Ratio, alternate
from bench.stage.job_plant import JobPlant, job_plant
from signalbox.jobs.end_record import EndRecord
from signalbox.jobs.verdict import COMPLETED
from signalbox.worker.lease import LeaseClaim, finish

DEEP, SHALLOW = 1_000_000, 1_000
SIZE, ROUNDS = 1_000, 15
FILL = (
    """
    INSERT INTO signalbox.jobs (
        id, job_type, lane, status, payload, attempts, executions, max_attempts, timeout_ms, created_at, queued_at,
        started_at, completed_at
    )
    SELECT signalbox.new_id(), 'do_nothing', 'normal', 'completed',
        jsonb_build_object('number', n), 1, 1, 3, 300000, past.at, past.at, past.at, past.at
    FROM generate_series(1, {number}) AS n CROSS JOIN (SELECT now() - interval '1 hour' AS at) AS past
    """,
    """
    INSERT INTO signalbox.job_executions (
        job_id, attempt_number, job_type, lane, status, lease_token, worker_id, started_at, completed_at
    )
    SELECT id, 1, job_type, lane, 'completed', id, 'bench', started_at, completed_at FROM signalbox.jobs
    """,
    "VACUUM (ANALYZE) signalbox.jobs, signalbox.job_executions",
    "SELECT sum(length(id::text)) FROM signalbox.jobs",
    "SELECT sum(length(job_id::text)) FROM signalbox.job_executions",
    "CHECKPOINT",
)


def measure(dsn: str) -> list[Ratio]:
    with ExitStack() as stack:
        deep, shallow = (_filled(stack.enter_context(job_plant(dsn)), number) for number in (DEEP, SHALLOW))
        ours, floor = alternate(ROUNDS, _claim_and_finish(deep), _claim_and_finish(shallow))
    print(f"claim and finish among {DEEP:,} jobs: {SIZE / ours * 1000:,.0f} jobs/s, 2 round trips a batch of {SIZE:,}")
    return [Ratio(f"claim and finish of {SIZE:,} jobs among {DEEP:,}", f"among {SHALLOW:,}", ours, floor, 1.1)]


def _filled(plant: JobPlant, number: int) -> JobPlant:
    for statement in FILL:
        plant.db.execute(statement.format(number=number).encode())
    return plant


def _claim_and_finish(plant: JobPlant) -> Callable[[], float]:
    def once() -> float:
        ids = plant.submit("do_nothing", SIZE)
        claim = LeaseClaim(str(uuid.uuid4()), "bench")
        began = perf_counter()
        jobs = claim.begin(plant.db, ids)
        changed = finish(plant.db, [EndRecord(job.id, job.token, COMPLETED) for job in jobs])
        took = perf_counter() - began
        if len(changed) != SIZE:
            raise RuntimeError(f"{len(changed)} of {SIZE} jobs were finished")
        plant.db.execute("DELETE FROM signalbox.job_executions WHERE job_id = ANY (%s::uuid[])", (ids,))
        plant.db.execute("DELETE FROM signalbox.jobs WHERE id = ANY (%s::uuid[])", (ids,))  # keep the table as deep
        plant.db.execute("VACUUM signalbox.jobs, signalbox.job_executions")
        return took

    return once
