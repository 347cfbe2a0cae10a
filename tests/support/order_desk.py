"""Gives an operator's orders about jobs straight to the engine's functions, and claims jobs as a worker does."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from psycopg.rows import dict_row

from signalbox.budget import Budget
from signalbox.jobs.end_record import EndRecord
from signalbox.jobs.verdict import Verdict
from signalbox.operate import cancel, caps, pause, retry_now
from signalbox.operate.audit import Actor
from signalbox.operate.bulk import BulkContext, BulkResult
from signalbox.operate.caps import Cap, CapTarget, Kind
from signalbox.operate.filters import JobFilter
from signalbox.packs.registries import JobTypeRegistry
from signalbox.submit.insert import submit
from signalbox.submit.new_job import NewJob
from signalbox.worker.lease import LeaseClaim, finish
from tests.support.jobs import TEST_JOB_TYPES

JO = Actor("jo", "because")


@dataclass
class OrderDesk:
    """One operator beside one worker, on the same connection unless a test takes another."""

    db: psycopg.Connection
    job_types: JobTypeRegistry = field(default_factory=lambda: JobTypeRegistry(TEST_JOB_TYPES))
    seconds: float = 60
    announced: list[str] = field(default_factory=list)

    @property
    def terms(self) -> BulkContext:
        return BulkContext(JO, Budget.of(self.seconds), self.announced.extend)

    def submit(self, job_type: str = "do_nothing", **fields: Any) -> str:
        return self.submit_all([NewJob(job_type=job_type, **fields)])[0]

    def submit_all(self, jobs: Sequence[NewJob]) -> list[str]:
        return [new.id for new in submit(self.db, self.job_types, jobs, datetime.now(UTC))]

    def begin(self, *ids: str) -> str:
        """Claims them; the token ends them."""
        claim = LeaseClaim(str(uuid.uuid4()), "worker-1", life=timedelta(minutes=5))
        claim.begin(self.db, ids)
        return claim.token

    def end(self, token: str, *ids: str, **verdict: Any) -> None:
        ended = Verdict(**({"execution": "completed"} | verdict))
        finish(self.db, [EndRecord(id_, token, ended) for id_ in ids])

    def fail(self, job_id: str) -> None:
        """For good."""
        error = {"type": "Permanent", "message": "never"}
        told = {"status": "failed", "execution": "failed", "error": error, "reason": "permanent", "fingerprint": "f"}
        self.end(self.begin(job_id), job_id, **told)

    def cancel(self, *ids: str, **given: Any) -> BulkResult:
        return cancel.cancel(self.db, self.job_types, _selection(ids, given), self.terms)

    def pause(self, *ids: str, **given: Any) -> BulkResult:
        return pause.pause(self.db, self.job_types, _selection(ids, given), self.terms)

    def resume(self, *ids: str, **given: Any) -> BulkResult:
        return pause.resume(self.db, self.job_types, _selection(ids, given), self.terms)

    def retry(self, *ids: str, **given: Any) -> BulkResult:
        return retry_now.retry_now(self.db, self.job_types, _selection(ids, given), self.terms)

    def pause_all(self, kind: Kind, key: str) -> None:
        caps.pause_target(self.db, self.job_types, CapTarget(kind, key), by=JO)

    def resume_all(self, kind: Kind, key: str) -> BulkResult:
        return caps.resume_target(self.db, self.job_types, CapTarget(kind, key), self.terms)

    def cap(self, kind: Kind, key: str, **cap: int | None) -> None:
        caps.set_cap(self.db, self.job_types, CapTarget(kind, key), Cap(**cap), by=JO)

    def job(self, job_id: str) -> dict[str, Any]:
        with self.db.cursor(row_factory=dict_row) as cursor:
            [row] = cursor.execute("SELECT * FROM signalbox.jobs WHERE id = %s", (job_id,)).fetchall()
        return row

    def status(self, job_id: str) -> str:
        return str(self.job(job_id)["status"])

    def audit(self) -> list[tuple[str, str, str, str, dict[str, Any]]]:
        statement = "SELECT actor, action, entity_type, entity_id, detail FROM signalbox.audit_log ORDER BY id"
        return self.db.execute(statement).fetchall()


def _selection(ids: Sequence[str], given: dict[str, Any]) -> JobFilter:
    return JobFilter(ids=ids or None, **given)
