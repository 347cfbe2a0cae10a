"""Lease jobs: a claim takes leases and begins the jobs, heartbeats renew them, every later write carries a token."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

import psycopg
from psycopg import ClientCursor
from psycopg.adapt import Buffer, Loader
from pydantic_core import from_json

from signalbox.jobs.end_record import Cost, EndRecord, to_array
from signalbox.jobs.job import ClaimedJob
from signalbox.jobs.retry_routing import LOST_AFTER
from signalbox.jobs.verdict import Verdict
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
# Four heartbeats: a worker that misses three counts as dead, and its jobs run again within 90 seconds.
LIFE = timedelta(seconds=60)
LONGEST_MS = 2**31 - 1
LIGHT = ("high", "normal", "low")
# A message usually comes to a worker sooner: until then, that worker is left alone with its job.
LATE = timedelta(seconds=3)

_LEASE_LOST = "SB001"  # raised by refuse_lost_lease


class EndedJob(NamedTuple):
    """Describe what an end has made of a job."""

    id: str  # empty: there are caps or rates, which may hold jobs that can begin now
    status: str
    follows: bool  # another job, which waited for one of these


class LeaseLost(Exception):
    """The job was rescued while this worker ran it; what it did in its transaction is undone."""


class JsonLoader(Loader):
    """Load jsonb in a third of the driver's time; what it finds too deep is left to the slower one."""

    def load(self, data: Buffer) -> Any:
        try:
            return from_json(bytes(data))
        except ValueError:
            return json.loads(bytes(data))


@dataclass(frozen=True, slots=True)
class LeaseClaim:
    """Make one call of claim_jobs. Its token names one attempt at each job, since a job is in a call once."""

    token: str
    worker_id: str
    node: str | None = None
    life: timedelta = LIFE

    def begin(
        self,
        db: Connection,
        job_ids: Sequence[str],
        *,
        longest_ms: int = LONGEST_MS,
        suspects: bool = True,
        caps: Sequence[str] = (),
        places: int = 1,
        lanes: Sequence[str] = LIGHT,
    ) -> list[ClaimedJob]:
        """Begin those of these jobs that may begin, and the next jobs that these caps hold, up to `places` of them."""
        return self._jobs(
            db,
            "claim",
            job_ids,
            longest_ms=min(longest_ms, LONGEST_MS),
            suspects=suspects,
            caps=list(caps),
            places=places,
            lanes=list(lanes),
        )

    def find(self, db: Connection) -> list[ClaimedJob]:
        """Return the jobs of a call whose answer was lost."""
        return self._jobs(db, "find_claimed", ())

    def _jobs(self, db: Connection, query: str, job_ids: Sequence[str], **values: Any) -> list[ClaimedJob]:
        ids = "{" + ",".join(job_ids) + "}"  # as one text: one by one would take the driver longer
        values |= {"ids": ids, "token": self.token, "worker_id": self.worker_id, "node": self.node, "lease": self.life}
        with db.cursor() as cursor:
            cursor.adapters.register_loader("jsonb", JsonLoader)
            return [ClaimedJob._make((*row, self.token)) for row in cursor.execute(SQL[query], values)]


def find_free(db: Connection, job_ids: Sequence[str]) -> list[str]:
    """Return those of these jobs whose rows are not locked."""
    return [id_ for (id_,) in db.execute(SQL["find_free"], {"ids": list(job_ids)})]


class Left(NamedTuple):
    """Describe a job that a claim did not begin, and that still waits."""

    id: str
    suspect: bool  # its last worker died with it
    held_by: str | None


def find_left(db: Connection, job_ids: Sequence[str]) -> list[Left]:
    """Return those of these jobs that are queued or held."""
    return list(map(Left._make, db.execute(SQL["find_left"], {"ids": list(job_ids)})))


def mark_held(db: Connection, job_ids: Sequence[str]) -> None:
    """Hold those of these jobs that may not begin now."""
    db.execute(SQL["hold"], {"ids": list(job_ids)})


class Due(NamedTuple):
    """Describe a queued job that no worker has looked at for a while."""

    id: str
    job_type: str
    suspect: bool


def find_due(db: Connection, lane: str, most: int) -> list[Due]:
    """Return the next jobs of a lane, with or without a message."""
    return list(
        map(
            Due._make, db.execute(SQL["find_due"], {"lane": lane, "most": most, "late": LATE, "lost_after": LOST_AFTER})
        )
    )


class Held(NamedTuple):
    """Describe a cap that holds jobs."""

    cap: str
    seconds: float | None  # until the next one may begin; None: no place is free
    fits: bool | None  # whether that job's time-out is short enough; None: all are in other lanes


def find_held(db: Connection, caps: Iterable[str], lanes: Sequence[str], longest_ms: int) -> list[Held]:
    """Return those of these caps that hold jobs."""
    values = {"caps": list(caps), "lanes": list(lanes), "longest_ms": min(longest_ms, LONGEST_MS)}
    return list(map(Held._make, db.execute(SQL["find_held"], values)))


def renew(db: Connection, beats: Iterable[Mapping[str, Any]], life: timedelta = LIFE) -> dict[str, bool]:
    """Renew these leases; return the jobs that are still this worker's, and whether to cancel them."""
    return dict(db.execute(SQL["renew"], {"beats": json.dumps(list(beats)), "lease": life}).fetchall())


def finish(db: Connection, ends: Iterable[EndRecord]) -> list[EndedJob]:
    """End attempts; return the new states of jobs that were still this worker's, and of their dependents."""
    records = list(ends)
    values = {"ends": to_array(records)}
    query = "finish_waiting" if any(one.verdict.wait_key for one in records) else "finish"
    if not any(one.verdict.files for one in records):
        return list(map(EndedJob._make, db.execute(SQL[query], values)))
    with db.transaction():
        ended = list(map(EndedJob._make, db.execute(SQL[query], values)))
        db.execute(SQL["keep_files"], values | {"ids": [one.id for one in ended if one.id and not one.follows]})
    return ended


def complete(db: Connection, job: ClaimedJob, verdict: Verdict, cost: Cost) -> list[EndedJob]:
    """End one completed job and COMMIT in one round trip. Raise LeaseLost, its transaction open, if nothing changed."""
    values = {
        "token": job.token,
        "job": job.id,
        "result": None if verdict.result is None else json.dumps(verdict.result),
        "output_files": None if verdict.output_files is None else list(verdict.output_files),
        **cost._asdict(),
    }
    try:
        # Two statements in one message take no parameters beside them.
        [(freed,)] = ClientCursor(db).execute(SQL["complete"], values)
    except psycopg.DatabaseError as error:
        if error.sqlstate == _LEASE_LOST:
            raise LeaseLost from None
        raise
    return [EndedJob(job.id, verdict.status, False), *(EndedJob(id_, "pending", True) for id_ in freed)]
