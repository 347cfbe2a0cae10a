"""Measure the job service levels of the document 001, on the laptop's stack from end to end: submit, lane, worker, end.

Each job is submitted by itself, as an operator's call of the api or in a transaction of one's own, and sent. The
stand-in for SQS is included: it slows with what it holds. There is no ratio: the levels are the document's.
"""

from __future__ import annotations

import json
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from time import perf_counter, sleep
from typing import Any

import psycopg

from bench.ratio import Ratio
from signalbox.engine_pack import ENGINE
from signalbox.packs.registries import JobTypeRegistry
from signalbox.submit.insert import submit
from signalbox.submit.new_job import NewJob
from signalbox_laptop.aws import client
from signalbox_laptop.home import StackState
from signalbox_laptop.up import StackOptions, down, up

CALLS, JOBS = 100, 400
PATIENCE_SECONDS = 120.0
PAYLOAD = {"channel": "in_app", "recipients": ["somebody"], "subject": "a word", "body": "and another"}


def measure(_dsn: str) -> list[Ratio]:
    with TemporaryDirectory(prefix="sb-bench-") as folder:
        home = Path(folder)
        state = up(StackOptions(home=home, port=0, clock=False, parameters={"ForecastsPack": "off"}), lambda _: None)
        try:
            with psycopg.connect(state.database, autocommit=True) as db:
                _report(_calls(state), _own(db), _follow(state, db))
        finally:
            down(home, lambda _: None)
    return []


def _calls(state: StackState) -> list[float]:
    """Return the milliseconds of each operator's call: through the api, committed and sent."""
    lambda_: Any = client("lambda", state.endpoint)
    body = json.dumps({"operation": "submit_jobs", "params": {"jobs": [_job()]}}).encode()
    return [_timed(lambda: lambda_.invoke(FunctionName=f"{state.stack}-api", Payload=body)) for _ in range(CALLS)]


def _own(db: psycopg.Connection) -> list[float]:
    """Return the milliseconds of each submit in one's own transaction; dispatch_jobs sends these."""
    job_types = JobTypeRegistry(ENGINE.job_types)
    new = NewJob(job_type="deliver_notification", payload=PAYLOAD)
    return [_timed(lambda: submit(db, job_types, [new], datetime.now(UTC))) for _ in range(CALLS)]


def _follow(state: StackState, db: psycopg.Connection) -> tuple[float, float]:
    """Return the p95 of seconds from submit to start, and jobs a minute, for jobs submitted by calls of forty."""
    db.execute("DELETE FROM signalbox.jobs WHERE status = 'queued'")
    lambda_: Any = client("lambda", state.endpoint)
    body = json.dumps({"operation": "submit_jobs", "params": {"jobs": [_job()] * 40}}).encode()
    began = perf_counter()
    since = db.execute("SELECT clock_timestamp()").fetchone()
    for _ in range(JOBS // 40):
        lambda_.invoke(FunctionName=f"{state.stack}-api", Payload=body)
    while _open(db) and perf_counter() < began + PATIENCE_SECONDS:
        with urllib.request.urlopen(f"{state.endpoint}/_signalbox/idle?timeout=5"):
            sleep(0.05)
    took = perf_counter() - began
    query = """
        SELECT percentile_cont(0.95) WITHIN GROUP (ORDER BY extract(epoch FROM started_at - created_at))
        FROM signalbox.jobs WHERE created_at >= %s AND status = 'completed'
    """
    row = db.execute(query, since).fetchone()
    return (float(row[0]) if row else 0.0), JOBS / took * 60


def _open(db: psycopg.Connection) -> bool:
    row = db.execute("SELECT EXISTS (SELECT FROM signalbox.jobs WHERE status IN ('queued', 'running'))").fetchone()
    return bool(row and row[0])


def _job() -> dict[str, Any]:
    return {"job_type": "deliver_notification", "payload": PAYLOAD}


def _timed(act: Any) -> float:
    began = perf_counter()
    act()
    return (perf_counter() - began) * 1000


def _report(calls: list[float], own: list[float], followed: tuple[float, float]) -> None:
    start, rate = followed
    print(f"service: submit by a call of the archiver, p95 {_p95(calls):.0f} ms (level 100)")
    print(f"service: submit in one's own transaction, p95 {_p95(own):.1f} ms")
    print(f"service: from submit to start, p95 {start:.2f} s (level 5)")
    print(f"service: {rate:,.0f} jobs a minute (level 100)", flush=True)


def _p95(taken: list[float]) -> float:
    return quantiles(taken, n=20)[-1]
