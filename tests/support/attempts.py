"""Take attempts step by step, without a worker: the engine's own claim of jobs and their end, on one connection."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import psycopg

from signalbox.jobs.end_record import EndRecord
from signalbox.jobs.verdict import Failure, Verdict
from signalbox.testing.rows import TROUBLE, job
from signalbox.worker.lease import LeaseClaim, finish

VERDICTS = {
    "completed": Verdict("completed", "completed"),
    "failed": Verdict("failed", "failed", error=TROUBLE, failure=Failure("permanent", "f", "warning")),
    "cancelled": Verdict("cancelled", "cancelled"),
    "pending": Verdict("pending", "failed", error=TROUBLE),
}


def claim(db: psycopg.Connection[Any], *ids: str) -> set[str]:
    """Begin those of the jobs that may begin; return their ids."""
    claimed = LeaseClaim(str(uuid.uuid4()), "worker-1", life=timedelta(minutes=5)).begin(db, ids)
    return {one.id for one in claimed}


def end(db: psycopg.Connection[Any], ends: Mapping[str, str]) -> set[str]:
    """End the attempts at these jobs, each with that status; return the jobs that were released."""
    records = [EndRecord(id_, str(job(db, id_)["lease_token"]), VERDICTS[status]) for id_, status in ends.items()]
    return {one.id for one in finish(db, records) if one.follows and one.status == "pending"}


def attempt(db: psycopg.Connection[Any], *ids: str, status: str = "completed") -> set[str]:
    """Claim these jobs, all of them, and end them; return the jobs that were released."""
    assert claim(db, *ids) == set(ids)
    return end(db, dict.fromkeys(ids, status))
