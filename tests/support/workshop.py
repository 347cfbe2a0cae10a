"""A worker on a test's database with the job types that tests register, and lanes that a test looks into."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg.rows import dict_row

from signalbox.app import App
from signalbox.invocation import Invocation
from signalbox.packs.job_type import JobType
from signalbox.packs.registries import JobTypeRegistry
from signalbox.submit.insert import submit
from signalbox.submit.new_job import NewJob, Submitted
from tests.support.jobs import TEST_JOB_TYPES
from tests.support.stage import Stage


def with_job_types(engine: App, types: Iterable[JobType] = TEST_JOB_TYPES) -> App:
    job_types = JobTypeRegistry(types, engine.resources.tasks)
    return replace(engine, resources=replace(engine.resources, job_types=job_types, node="log-stream"))


class Workshop:
    """One worker's execution environment beside the test's own connection."""

    def __init__(self, stage: Stage, db: psycopg.Connection, types: Iterable[JobType] = TEST_JOB_TYPES) -> None:
        self.db = db
        self.engine = with_job_types(stage.engine, types)

    @property
    def job_types(self) -> JobTypeRegistry:
        return self.engine.resources.job_types

    def submit(self, job_type: str = "do_nothing", **fields: Any) -> Submitted:
        return self.submit_all([NewJob(job_type=job_type, **fields)])[0]

    def submit_all(self, jobs: Sequence[NewJob]) -> list[Submitted]:
        return submit(self.db, self.job_types, jobs, datetime.now(UTC))

    def obey(self, word: str, seconds: int = 0, **fields: Any) -> str:
        return self.submit("obey", payload={"word": word, "seconds": seconds}, **fields).id

    def work(self, *job_ids: str, seconds: float = 300, lane: str = "") -> dict[str, Any]:
        """One invocation with a message a job; of a lane, whose other jobs it takes up, too."""
        rows = self.db.execute("SELECT id::text, job_type FROM signalbox.jobs WHERE id = ANY (%s)", (list(job_ids),))
        types: dict[str, str] = dict(rows.fetchall())
        bodies = [json.dumps({"job_id": id_, "job_type": types.get(id_, "unknown")}) for id_ in job_ids]
        return self.deliver(bodies, seconds=seconds, lane=lane)

    def deliver(self, bodies: Sequence[str], seconds: float = 300, lane: str = "") -> dict[str, Any]:
        source = {"eventSourceARN": f"arn:aws:sqs:us-east-1:123456789012:signalbox-{lane}"} if lane else {}
        records = [{"messageId": f"message-{number}", "body": body, **source} for number, body in enumerate(bodies)]
        return self.engine.work({"Records": records}, Invocation.of("request", datetime.now(UTC), seconds))

    def job(self, job_id: str) -> dict[str, Any]:
        return self._row("SELECT * FROM signalbox.jobs WHERE id = %s", job_id)

    def dead_letter(self, job_id: str) -> dict[str, Any]:
        return self._row("SELECT * FROM signalbox.dead_letter_jobs WHERE original_job_id = %s", job_id)

    def attempts(self, job_id: str) -> list[dict[str, Any]]:
        statement = "SELECT * FROM signalbox.job_executions WHERE job_id = %s ORDER BY attempt_number"
        return self._rows(statement, job_id)

    def make_due(self, *job_ids: str) -> None:
        """As if the time that the jobs wait for had come."""
        self.db.execute(
            "UPDATE signalbox.jobs SET scheduled_for = now() - interval '1 s' WHERE id = ANY (%s::uuid[])",
            (list(job_ids),),
        )

    def _row(self, statement: str, job_id: str) -> dict[str, Any]:
        [row] = self._rows(statement, job_id)
        return row

    def _rows(self, statement: str, job_id: str) -> list[dict[str, Any]]:
        with self.db.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(statement.encode(), (job_id,)).fetchall()
