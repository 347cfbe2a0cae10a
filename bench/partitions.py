"""Pruning 1,000,000 jobs that lie in a partition of their own, by a drop, against 1,000,000 outside of it, row by row.

Both are runs of the task prune_jobs, which finds by itself what it may drop. Printed beside: how much WAL each writes,
and what the number of partitions costs a statement, planning included.
"""

from __future__ import annotations

import io
import uuid
from contextlib import redirect_stdout
from datetime import UTC, datetime, timedelta
from statistics import median
from time import perf_counter
from typing import Any

from bench.job_plant import JobPlant, job_plant
from bench.ratio import Ratio
from signalbox.invocation import Invocation
from signalbox.worker.lease import Claim

JOBS = 1_000_000
NUMBERS = (5, 30, 100)
ROUNDS = 200
PARTITION = "SELECT signalbox.add_partition(%s, %s, %s)"
FILL = (
    """
    INSERT INTO signalbox.jobs (
        id, job_type, lane, status, payload, attempts, executions, max_attempts, timeout_ms, created_at, queued_at,
        started_at, completed_at
    )
    SELECT overlay(gen_random_uuid()::text PLACING left(signalbox.first_id(at)::text, 14) FROM 1 FOR 14)::uuid,
        'do_nothing', 'normal', 'completed', jsonb_build_object('number', n), 1, 1, 3, 300000, at, at, at, at
    FROM generate_series(1, {number}) AS n CROSS JOIN LATERAL (
        SELECT timestamptz '{since}' + n * interval '5 d' / {number} AS at
    ) AS spread
    """,
    """
    INSERT INTO signalbox.job_executions (
        job_id, attempt_number, job_type, lane, status, lease_token, worker_id, started_at, completed_at
    )
    SELECT id, 1, job_type, lane, 'completed', id, 'bench', started_at, completed_at FROM signalbox.jobs
    """,
    "VACUUM (ANALYZE) signalbox.jobs, signalbox.job_executions",
    "CHECKPOINT",
)
LIST = "SELECT id, status FROM signalbox.jobs ORDER BY id DESC LIMIT 20"
DUE = "SELECT id FROM signalbox.jobs WHERE send_at <= now() ORDER BY send_at LIMIT 100 FOR UPDATE SKIP LOCKED"


def measure(dsn: str) -> list[Ratio]:
    since = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=56)
    dropped, dropped_bytes = _prune(dsn, since, partitioned=True)
    deleted, deleted_bytes = _prune(dsn, since, partitioned=False)
    print(
        f"WAL of pruning {JOBS:,} jobs and their attempts: {dropped_bytes / 1e6:,.1f} MB by drop,"
        f" {deleted_bytes / 1e6:,.1f} MB by delete"
    )
    _tell_statements(dsn)
    what = f"pruning {JOBS:,} jobs and their attempts by drop"
    return [Ratio(what, "the same row by row", dropped * 1000, deleted * 1000, 0.1)]


def _prune(dsn: str, since: datetime, *, partitioned: bool) -> tuple[float, int]:
    with job_plant(dsn) as plant:
        if partitioned:
            for table in ("jobs", "job_executions"):
                plant.db.execute(PARTITION, (table, since, since + timedelta(days=7)))
        for statement in FILL:
            plant.db.execute(statement.format(number=JOBS, since=since.isoformat()).encode())
        plant.engine.tools.log.setLevel("WARNING")
        before = _wal(plant)
        began = perf_counter()
        with redirect_stdout(io.StringIO()):
            answer = plant.engine.archive({"task": "prune_jobs"}, Invocation.of("bench", datetime.now(UTC), 3600))
        took = perf_counter() - began
        if answer["items"] != 2 * JOBS:
            raise RuntimeError(f"{answer['items']} rows went instead of {2 * JOBS}")
        return took, _wal(plant) - before


def _wal(plant: JobPlant) -> int:
    row: Any = plant.db.execute("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint").fetchone()
    return int(row[0])


def _tell_statements(dsn: str) -> None:
    for number in NUMBERS:
        with job_plant(dsn) as plant:
            _past_weeks(plant, number)
            times = [[_claim_ten(plant), _timed(plant, LIST), _timed(plant, DUE)] for _ in range(ROUNDS)]
        claim, listed, due = (median(each) * 1000 for each in zip(*times, strict=True))
        print(
            f"with {number} partitions: claim of ten {claim:.2f} ms, the newest twenty {listed:.2f} ms,"
            f" a batch of what is due {due:.2f} ms"
        )


def _past_weeks(plant: JobPlant, number: int) -> None:
    """As many partitions as there are in all, with those of today, of weeks to come and the two that catch the rest."""
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    row: Any = plant.db.execute(
        "SELECT count(*) FROM pg_inherits WHERE inhparent = 'signalbox.jobs'::regclass"
    ).fetchone()
    for week in range(number - row[0]):
        for table in ("jobs", "job_executions"):
            ends = today - timedelta(days=7 * week)
            plant.db.execute(PARTITION, (table, ends - timedelta(days=7), ends))


def _claim_ten(plant: JobPlant) -> float:
    ids = plant.submit("do_nothing", 10)
    began = perf_counter()
    Claim(str(uuid.uuid4()), "bench").begin(plant.db, ids)
    return perf_counter() - began


def _timed(plant: JobPlant, statement: str) -> float:
    began = perf_counter()
    plant.db.execute(statement.encode()).fetchall()
    return perf_counter() - began
