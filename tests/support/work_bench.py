"""Brings jobs from state to state by the engine's own claim and finish, step by step, as a test says."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import psycopg
from psycopg.rows import dict_row

from signalbox.jobs.end_record import EndRecord
from signalbox.jobs.job import ClaimedJob
from signalbox.jobs.verdict import Verdict
from signalbox.packs.registries import JobTypeRegistry
from signalbox.submit.insert import submit
from signalbox.submit.new_job import NewJob, Submitted
from signalbox.worker.lease import LeaseClaim, finish
from tests.support.jobs import TEST_JOB_TYPES

First = TypeVar("First")
Second = TypeVar("Second")
CATALOGUE = JobTypeRegistry(TEST_JOB_TYPES)
TROUBLE = {"type": "Trouble", "message": "as the test wants it"}
VERDICTS = {
    "completed": Verdict("completed", "completed"),
    "failed": Verdict("failed", "failed", error=TROUBLE, reason="permanent", fingerprint="f"),
    "cancelled": Verdict("cancelled", "cancelled"),
    "pending": Verdict("pending", "failed", error=TROUBLE),
}


class WorkBench:
    """One worker's hands on a connection."""

    def __init__(self, db: psycopg.Connection[Any]) -> None:
        self.db = db
        self.at_work: dict[str, ClaimedJob] = {}

    def submit_all(self, jobs: Sequence[NewJob], at: datetime | None = None) -> list[Submitted]:
        return submit(self.db, CATALOGUE, jobs, at or datetime.now(UTC))

    def submit(self, job_type: str = "do_nothing", **fields: Any) -> str:
        return self.submit_all([NewJob(job_type=job_type, **fields)])[0].id

    def begin(self, *ids: str) -> set[str]:
        """Those that were to be had."""
        claimed = LeaseClaim(str(uuid.uuid4()), "tests", life=timedelta(minutes=5)).begin(self.db, ids)
        self.at_work.update({job.id: job for job in claimed})
        return {job.id for job in claimed}

    def end(self, ends: Mapping[str, str]) -> set[str]:
        """Jobs, and what becomes of them; answers those that were released."""
        records = [
            EndRecord(self.at_work[id_].id, self.at_work[id_].token, VERDICTS[status]) for id_, status in ends.items()
        ]
        return {one.id for one in finish(self.db, records) if one.follows and one.status == "pending"}

    def run(self, *ids: str, status: str = "completed") -> set[str]:
        assert self.begin(*ids) == set(ids)
        return self.end(dict.fromkeys(ids, status))

    def status(self, id_: str) -> str:
        return str(self.job(id_)["status"])

    def job(self, id_: str) -> dict[str, Any]:
        with self.db.cursor(row_factory=dict_row) as cursor:
            found = cursor.execute("SELECT * FROM signalbox.jobs WHERE id = %s", (id_,)).fetchone()
        assert found is not None, f"there is no job {id_}"
        return found

    def pause(self, id_: str) -> None:
        self.db.execute("UPDATE signalbox.jobs SET status = 'paused', send_at = NULL WHERE id = %s", (id_,))

    def watch(self, futures: Sequence[Future[Any]]) -> None:
        """Until each of them waits for a lock or has ended."""
        statement = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = %s"
        for _ in range(100_000):
            self.db.execute("SELECT pg_stat_clear_snapshot()")
            [waiting] = self.db.execute(statement, ("Lock",)).fetchone() or (0,)
            if waiting + sum(future.done() for future in futures) >= len(futures):
                return
        raise AssertionError("somebody neither waits nor ends")


def overlapping(bench: WorkBench, act: Callable[[], First], *then: Callable[[], Second]) -> tuple[First, list[Second]]:
    """Acts in a transaction on the bench, which commits once each `then`, in a thread of its own and begun after the
    one before, waits for a lock or has ended."""
    with ThreadPoolExecutor(len(then)) as threads:
        with bench.db.transaction():
            first, futures = act(), list[Future[Second]]()
            for do in then:
                futures.append(threads.submit(do))
                bench.watch(futures)
        return first, [future.result() for future in futures]
