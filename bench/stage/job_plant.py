"""Provide a database with the job plane in it, and a worker that is handed events as SQS would hand them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from time import perf_counter, sleep
from typing import Any, cast

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from bench.job_types import BENCH_JOB_TYPES
from bench.stage.lane import Lane
from signalbox.app import App
from signalbox.engine_pack import ENGINE
from signalbox.invocation import Invocation
from signalbox.migrate import migrations
from signalbox.packs.registries import JobTypeRegistry
from signalbox.postgres.connection import Connection
from signalbox.submit.insert import submit
from signalbox.submit.new_job import NewJob

MOST_RECORDS = 10_000  # in an event
SWEEP_SECONDS = 60.0
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class JobPlant:
    """Own the worker, and a connection beside its own."""

    dsn: str
    engine: App
    db: Connection

    @property
    def lane(self) -> Lane:
        return cast(Lane, self.engine.resources.clients.sqs)

    def submit(self, job_type: str, number: int, *, tenant: str | None = None, **payload: float) -> list[str]:
        jobs = [
            NewJob(job_type=job_type, tenant=tenant, payload={"number": place, **payload}) for place in range(number)
        ]
        return [new.id for new in submit(self.db, self.engine.resources.job_types, jobs, datetime.now(UTC))]

    def work(self, events: Sequence[dict[str, Any]]) -> float:
        """Return how many seconds the worker takes, one event after the other."""
        with redirect_stdout(io.StringIO()):  # its log is written, and not shown
            self.engine.resources.database.connection()
            began = perf_counter()
            self.engine_works(events)
            return perf_counter() - began

    def engine_works(self, events: Sequence[dict[str, Any]]) -> None:
        """Work without a clock, and show the log."""
        for event in events:
            answer = self.engine.work(event, Invocation.of("bench", datetime.now(UTC), 300))
            if answer != {"batchItemFailures": []}:
                raise RuntimeError(f"messages came back: {answer}")

    def work_off(self, ids: Sequence[str], job_type: str, patience: float) -> float:
        """Return how many seconds it takes until these jobs have completed, or the patience if that is less.

        The worker is handed what the lane holds as it falls due, and dispatch_jobs runs each minute.
        """
        for id_ in ids:
            self.lane.put(_record(id_, job_type)["body"])
        began = swept = perf_counter()
        while (now := perf_counter()) - began < patience:
            if now - swept >= SWEEP_SECONDS:
                self.sweep()
                swept = now
            if not (records := self.lane.take(MOST_RECORDS)):
                sleep(0.005)
                continue
            self.work([{"Records": records}])
            took = perf_counter() - began
            if self.count_completed(ids) == len(ids):
                return took
        return patience

    def sweep(self) -> None:
        with redirect_stdout(io.StringIO()):
            self.engine.run_task(
                {"task": "dispatch_jobs", "force": True}, Invocation.of("bench", datetime.now(UTC), 300)
            )

    def require_completed(self, ids: Sequence[str]) -> None:
        if (done := self.count_completed(ids)) != len(ids):
            raise RuntimeError(f"{done} of {len(ids)} jobs are completed, with an attempt each")

    def count_completed(self, ids: Sequence[str]) -> int:
        row = self.db.execute(
            "SELECT count(*) FROM signalbox.jobs AS j JOIN signalbox.job_executions AS x ON x.job_id = j.id"
            " WHERE j.id = ANY (%s::uuid[]) AND j.status = 'completed' AND x.status = 'completed'",
            (list(ids),),
        ).fetchone()
        return row[0] if row else 0


def events_of(ids: Sequence[str], size: int, job_type: str = "do_nothing") -> list[dict[str, Any]]:
    """Return the jobs' messages as SQS hands them to a function, `size` at a time."""
    return [
        {"Records": [_record(id_, job_type) for id_ in ids[start : start + size]]} for start in range(0, len(ids), size)
    ]


def _record(job_id: str, job_type: str) -> dict[str, str]:
    return {"messageId": job_id[::-1], "body": json.dumps({"job_id": job_id, "job_type": job_type})}


@contextmanager
def job_plant(dsn: str, slots: int | None = None) -> Iterator[JobPlant]:
    """Drop the database in the end, so that no rows are left for the next benchmark."""
    with own_database(dsn) as own, psycopg.connect(own, autocommit=True, prepare_threshold=None) as connection:
        migrations.apply(connection, [ENGINE], "bench")
        engine = start_worker(own, slots)
        try:
            yield JobPlant(own, engine, connection)
        finally:
            engine.close()


def start_worker(dsn: str, slots: int | None = None) -> App:
    """Start a worker with `slots` jobs at once, and a lane of its own."""
    at_once = {"SIGNALBOX_WORKER_SLOTS": str(slots)} if slots else {}
    engine = App.start({"SIGNALBOX_STACK": "bench", "SIGNALBOX_DATABASE_URL": dsn, **at_once})
    vars(engine.resources.clients)["sqs"] = Lane()
    return replace(engine, resources=replace(engine.resources, job_types=JobTypeRegistry(BENCH_JOB_TYPES)))


@contextmanager
def own_database(dsn: str) -> Iterator[str]:
    name = f"bench_{next(_numbers)}"
    with psycopg.connect(dsn, autocommit=True) as root:
        root.execute(f"CREATE DATABASE {name}".encode())
        try:
            yield as_url(make_conninfo(dsn, dbname=name))
        finally:
            root.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def as_url(dsn: str) -> str:
    parts = conninfo_to_dict(dsn)
    return f"postgresql://{parts['user']}@/{parts['dbname']}?host={parts['host']}&port={parts['port']}"
