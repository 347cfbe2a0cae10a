"""List, show, explain, cancel and retry jobs for an operator, and send the signals that they wait for."""

from __future__ import annotations

from typing import Any, ClassVar

from psycopg.types.json import Jsonb
from pydantic import Field, JsonValue

from signalbox.invocation import Invocation, Resources
from signalbox.jobs.status import FINAL
from signalbox.operate import audit, explain, job_detail, listing
from signalbox.operate.audit import Actor
from signalbox.operate.cancel import cancel
from signalbox.operate.filters import JobFilter
from signalbox.operate.redaction import redact_payload, refuse_sensitive
from signalbox.operate.retry_now import retry_now
from signalbox.operate.short_ids import IdFields, IdParams
from signalbox.operations.bulk import BulkJobParams, run_bulk_action
from signalbox.packs.payload import Payload
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)


class ListJobs(JobFilter):
    """Select jobs by filters, and which page."""

    ID_FIELDS: ClassVar[IdFields] = (*JobFilter.ID_FIELDS, ("before_id", "job"))
    limit: int = Field(50, ge=1, le=1000)
    before_id: str | None = None


class ShowJob(IdParams):
    ID_FIELDS = (("id", "job"),)
    id: str


class ShowProgress(IdParams):
    ID_FIELDS = (("id", "job"),)
    id: str


class ExplainJob(IdParams):
    ID_FIELDS = (("id", "job"),)
    id: str


class SendSignal(Payload):
    """Send a signal to the jobs that wait for its key, or will; the first with a key counts."""

    key: str = Field(min_length=1, max_length=200)
    payload: JsonValue = None
    by: str = Field("unnamed", min_length=1, max_length=200)
    reason: str | None = Field(None, max_length=1000)


class CancelJobs(BulkJobParams):
    """Cancel waiting jobs at once, and ask running jobs to stop."""


class RetryJobs(BulkJobParams):
    """Try jobs now that wait for their time."""


def list_jobs(resources: Resources, params: ListJobs, _: Invocation) -> dict[str, Any]:
    """Return a page, newest first; `next` is the `before_id` of the page that follows."""
    refuse_sensitive(resources.job_types, params)
    db = resources.database.connection()
    jobs = listing.list_jobs(db, params, params.limit, params.before_id)
    if not jobs:
        listing.require_known(db, resources.job_types, params)
    return {"jobs": jobs, "next": jobs[-1]["id"] if len(jobs) == params.limit else None}


def show_job(resources: Resources, params: ShowJob, invocation: Invocation) -> dict[str, Any]:
    found = job_detail.show_job(resources.database.connection(), params.id, invocation.tenant)
    return found | {"job": redact_payload(resources.job_types, found["job"])}


def show_progress(resources: Resources, params: ShowProgress, _: Invocation) -> dict[str, Any]:
    return {"progress": job_detail.show_progress(resources.database.connection(), params.id)}


def explain_job(resources: Resources, params: ExplainJob, invocation: Invocation) -> dict[str, Any]:
    return {"explanation": explain.explain_job(resources.database.connection(), params.id, invocation.tenant)}


def cancel_jobs(resources: Resources, params: CancelJobs, invocation: Invocation) -> dict[str, Any]:
    """Cancel the jobs. Of ids that are named, those that had ended are listed as `refused`."""
    refused: list[dict[str, str]] = []
    if params.ids and not params.dry_run:
        states = listing.states_of(resources.database.connection(), params.ids)
        refused = [{"id": id_, "status": state} for id_, state in states.items() if state in FINAL]
    answer = run_bulk_action(resources, params, invocation, cancel)
    return answer | ({"refused": refused} if refused else {})


def retry_jobs(resources: Resources, params: RetryJobs, invocation: Invocation) -> dict[str, Any]:
    return run_bulk_action(resources, params, invocation, retry_now)


def send_signal(resources: Resources, params: SendSignal, _: Invocation) -> dict[str, Any]:
    """Return whether it is the first with its key, and the jobs that it makes due."""
    db = resources.database.connection()
    with db.transaction():
        values = {"key": params.key, "payload": Jsonb(params.payload), "by": params.by}
        [(is_first, woken)] = db.execute(SQL["send_signal"], values).fetchall()
        audit.note(db, Actor(params.by, params.reason), "signal.send", kind="signal", id_=params.key)
    sent = resources.publisher.send_due(db, woken)
    return {"signal": {"key": params.key, "is_first": is_first, "woken": woken}, "sent": sent}
