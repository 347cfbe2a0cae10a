"""The lease on the jobs of one SQS batch: taken in one statement, and every later write carries its token."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
from psycopg import ClientCursor
from psycopg.adapt import Buffer, Loader
from pydantic_core import from_json

from signalbox.database import Connection
from signalbox.jobs.job import Job
from signalbox.jobs.usage import Cost
from signalbox.jobs.verdict import Verdict
from signalbox.queries import load_queries

SQL = load_queries(__file__)

Changed = tuple[str, str, bool]

_LEASE_LOST = "SB001"  # of refuse_lost_lease


class LeaseLost(Exception):
    """The job was rescued while this worker was at it; what it did in its transaction is undone."""


class JsonLoader(Loader):
    """In a third of the driver's time; what it finds too deep is left to the slower one."""

    def load(self, data: Buffer) -> Any:
        try:
            return from_json(bytes(data))
        except ValueError:
            return json.loads(bytes(data))


@dataclass(frozen=True, slots=True)
class Lease:
    """One invocation's."""

    token: uuid.UUID
    worker_id: str
    node: str | None
    life: timedelta

    def claim(self, db: Connection, job_ids: Sequence[str], *, again: bool = False) -> list[Job]:
        """Return the jobs that this worker may run; if asked again, also those of a claim whose answer was lost."""
        ids = "{" + ",".join(job_ids) + "}"  # as a text at once: each by itself would take the driver longer
        values = {"ids": ids, "token": self.token, "worker_id": self.worker_id, "node": self.node, "lease": self.life}
        with db.cursor() as cursor:
            cursor.adapters.register_loader("jsonb", JsonLoader)
            jobs = list(map(Job._make, cursor.execute(SQL["claim"], values)))
            return list(map(Job._make, cursor.execute(SQL["find_claimed"], values))) if again else jobs

    def finish(self, db: Connection, verdicts: Iterable[str]) -> list[Changed]:
        """(id, status, whether it is another job that waited for one of these) of all that changed."""
        found: list[Changed] = db.execute(
            SQL["finish"], {"token": self.token, "verdicts": "[" + ",".join(verdicts) + "]"}
        ).fetchall()
        return found

    def complete(self, db: Connection, job: Job, verdict: Verdict, cost: Cost) -> list[Changed]:
        """The same for one job that has completed, with the COMMIT of its transaction in the same round trip. Raises
        LeaseLost where nothing changed, the transaction being open then."""
        values = {
            "token": self.token,
            "job": job.id,
            "number": job.execution,
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
        return [(job.id, verdict.status, False), *((id_, "pending", True) for id_ in freed)]
