"""Measure what a job and a run leave behind, and their processor time: docs/cost.md calculates with these.

It measures bytes, flushes and processor time, not elapsed time, so that a busy machine changes little. WAL is measured
without whole pages, as Aurora writes it, and with them, as RDS does after each checkpoint.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psutil

from bench.of_jobs.transactional import BATCH as BATCH_OF_TRIPS
from bench.of_jobs.transactional import count_trips
from bench.of_tasks.run import NEWEST, empty_engine
from bench.ratio import Ratio, timed
from bench.stage.job_plant import JobPlant, events_of, job_plant
from signalbox.invocation import Invocation
from signalbox.jobs.retry_routing import LOST_AFTER
from signalbox.postgres.connection import Connection
from signalbox.tasks import dispatch_jobs

JOBS, LONE, RUNS, BATCH = 4_000, 400, 20, 1_000
MOST_WAL = 1_536  # bytes, from submit to end
FSYNCS = "SELECT coalesce(sum(fsyncs), 0)::bigint FROM pg_stat_io WHERE object = 'wal'"
LSN = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"
STORED = """
    SELECT pg_total_relation_size('signalbox.jobs') + sum(pg_total_relation_size(relid))
    FROM pg_partition_tree('signalbox.job_executions')
"""
DUE = "UPDATE signalbox.jobs SET status = 'pending', scheduled_for = now(), send_at = now() WHERE status = 'queued'"


@dataclass(frozen=True, slots=True)
class Spent:
    """Count what one act costs: bytes of WAL and its flushes, bytes of log, the server's and our processor time."""

    wal: int
    fsyncs: int
    log: str
    server_ms: float
    own_ms: float


def measure(dsn: str) -> list[Ratio]:
    with job_plant(dsn) as plant:
        figures = _of_jobs(plant) | _of_transactional(plant) | _of_sweeps(plant) | _of_whole_pages(plant)
    for name, value in (figures | _of_runs(dsn)).items():
        print(f"{name}: {value:.4g}")
    wal = figures["submit_in_bulk_wal_bytes"] + figures["job_wal_bytes"]
    return [Ratio("write-ahead log of a no-op job: submit, claim, end", "1.5 KB", wal, MOST_WAL, 1.0, "bytes")]


def _of_jobs(plant: JobPlant) -> dict[str, float]:
    _write_whole_pages(plant, "off")
    plant.work(events_of(plant.submit("do_nothing", BATCH), BATCH))  # to warm up
    before = _number(plant.db, STORED)
    ids: list[str] = []

    def submit_each() -> None:
        for _ in range(LONE):
            ids.extend(plant.submit("do_nothing", 1))

    submitted = _spend(plant, submit_each)
    few = _spend(plant, lambda: plant.engine_works(events_of(ids, 1)))
    ids = []
    in_bulk = _spend(plant, lambda: ids.extend(plant.submit("do_nothing", JOBS)))
    many = _spend(plant, lambda: plant.engine_works(events_of(ids, BATCH)))
    plant.db.execute("VACUUM signalbox.jobs, signalbox.job_executions")
    return {
        "submit_wal_bytes": submitted.wal / LONE,
        "submit_fsyncs": submitted.fsyncs / LONE,
        "submit_server_ms": submitted.server_ms / LONE,
        "submit_in_bulk_wal_bytes": in_bulk.wal / JOBS,
        "lone_job_wal_bytes": few.wal / LONE,
        "lone_job_fsyncs": few.fsyncs / LONE,
        "job_wal_bytes": many.wal / JOBS,
        "job_stored_bytes": (_number(plant.db, STORED) - before) / (JOBS + LONE),
        "job_cpu_ms": many.own_ms / JOBS,
        "job_server_ms": many.server_ms / JOBS,
        "batch_cpu_ms": few.own_ms / LONE - many.own_ms / JOBS,
        "batch_server_ms": few.server_ms / LONE - many.server_ms / JOBS,
        "batch_log_bytes": len(few.log) / LONE,
    }


def _of_transactional(plant: JobPlant) -> dict[str, float]:
    plant.db.execute("CREATE TABLE business (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, number int)")
    ids = plant.submit("insert_row", LONE)
    spent = _spend(plant, lambda: plant.engine_works(events_of(ids, 100, "insert_row")))
    return {
        "transactional_job_wal_bytes": spent.wal / LONE,
        "transactional_job_fsyncs": spent.fsyncs / LONE,
        "transactional_job_cpu_ms": spent.own_ms / LONE,
        "transactional_job_server_ms": spent.server_ms / LONE,
        "transactional_job_round_trips": (count_trips(plant) - 2) / BATCH_OF_TRIPS,  # without claim and finish
    }


def _of_sweeps(plant: JobPlant) -> dict[str, float]:
    """Measure a thousand jobs taken by dispatch_jobs: the statement alone."""
    plant.submit("do_nothing", dispatch_jobs.BATCH)
    plant.db.execute(DUE)
    values = {"now": datetime.now(UTC), "after": datetime(1970, 1, 1, tzinfo=UTC), "batch": dispatch_jobs.BATCH}
    rest = {"empty": [], "down": [], "patience": dispatch_jobs.PATIENCE, "may_repeat": True, "keyed": []}
    values |= {**rest, "lost_after": LOST_AFTER}
    took = timed(lambda: plant.db.execute(dispatch_jobs.SQL["take_due"], values).fetchall())()
    return {"dispatch_job_ms": 1000 * took / dispatch_jobs.BATCH}


def _of_whole_pages(plant: JobPlant) -> dict[str, float]:
    _write_whole_pages(plant, "on")
    ids = plant.submit("do_nothing", JOBS)
    plant.db.execute("CHECKPOINT")
    spent = _spend(plant, lambda: plant.engine_works(events_of(ids, BATCH)))
    return {"job_wal_bytes_with_whole_pages": spent.wal / JOBS}


def _of_runs(dsn: str) -> dict[str, float]:
    with empty_engine(dsn) as engine:
        log = io.StringIO()
        with redirect_stdout(log):
            for number in range(RUNS):
                _run_at(engine, number)
        return {"run_log_bytes": len(log.getvalue()) / RUNS}


def _run_at(engine: Any, number: int) -> None:
    at = NEWEST - timedelta(minutes=10_000 + number)
    engine.run_task({"task": "empty_task", "scheduled_time": at.isoformat()}, Invocation.of("bench", at, 60))


def _spend(plant: JobPlant, act: Callable[[], object]) -> Spent:
    worker = plant.engine.resources.database.connection()
    servers, log = (_process(worker), _process(plant.db)), io.StringIO()
    wal, fsyncs = _number(plant.db, LSN), _fsyncs(plant)
    server, own = sum(map(_cpu_ms, servers)), time.process_time()
    with redirect_stdout(log):
        act()
    own_ms, server_ms = 1000 * (time.process_time() - own), sum(map(_cpu_ms, servers)) - server
    return Spent(_number(plant.db, LSN) - wal, _fsyncs(plant) - fsyncs, log.getvalue(), server_ms, own_ms)


def _fsyncs(plant: JobPlant) -> int:
    """Count the flushes of both sessions; each counts its own, and reports them when asked to."""
    for connection in (plant.engine.resources.database.connection(), plant.db):
        connection.execute("SELECT pg_stat_force_next_flush()")
        connection.execute("SELECT 1")
    return _number(plant.db, FSYNCS)


def _write_whole_pages(plant: JobPlant, on_or_off: str) -> None:
    plant.db.execute(f"ALTER SYSTEM SET full_page_writes = {on_or_off}".encode())
    plant.db.execute("SELECT pg_reload_conf()")
    plant.db.execute("CHECKPOINT")


def _process(connection: Connection) -> psutil.Process:
    return psutil.Process(connection.info.backend_pid)


def _cpu_ms(process: psutil.Process) -> float:
    times = process.cpu_times()
    return 1000 * float(times.user + times.system)


def _number(connection: Connection, query: str) -> int:
    row = connection.execute(query.encode()).fetchone()
    return int(row[0]) if row else 0
