"""Submit jobs from outside: one or many, all of them or none, sent once they are committed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any, Literal

from psycopg import Rollback
from pydantic import BeforeValidator, Field

from signalbox.errors import JobRefused, JobUnknown
from signalbox.invocation import Invocation, Resources
from signalbox.jobs.dependency import Dependency
from signalbox.operate import audit
from signalbox.operate.audit import Actor
from signalbox.operate.short_ids import whole_ids
from signalbox.packs.payload import Instant, Payload
from signalbox.postgres.connection import Connection
from signalbox.postgres.uuid7 import new_ids
from signalbox.submit.insert import submit
from signalbox.submit.new_job import NewJob, Submitted

MOST_JOBS = 20_000  # of one call: its request and its answer must each fit into Lambda's six megabytes
_YEAR = 366 * 86_400


class DependencyParams(Payload):
    """Name another job to wait for: by its id, or by the `ref` of one in the same call."""

    job: str
    type: Literal["completion", "success"] = "success"
    on_failure: Literal["fail", "cancel", "proceed"] = "fail"


def _by_id(given: object) -> object:
    """Read a lone id or ref as a job that has to succeed. A union would list its faults for each of its kinds."""
    return {"job": given} if isinstance(given, str) else given


class JobParams(Payload):
    """Describe one job. Only its type is needed, and what its payload asks for."""

    job_type: str
    payload: dict[str, Any] = Field(default_factory=dict)
    ref: str | None = Field(None, min_length=1, max_length=200)  # a name for it within this call
    idempotency_key: str | None = Field(None, min_length=1, max_length=500)
    replace_key: str | None = Field(None, min_length=1, max_length=200)
    category: str | None = None
    priority: int = 5
    lane: str | None = None
    delay_seconds: float | None = Field(None, ge=0, le=_YEAR)
    at: Instant | None = None
    tenant: str | None = Field(None, max_length=200)
    cap_key: str | None = Field(None, max_length=200)
    group: str | None = Field(None, max_length=200)
    parent_id: str | None = None
    depends_on: list[Annotated[DependencyParams, BeforeValidator(_by_id)]] = Field(
        default_factory=list, max_length=1000
    )
    max_attempts: int | None = None
    timeout_seconds: float | None = Field(None, gt=0, le=900)
    name: str | None = Field(None, max_length=200)
    correlation_id: str | None = Field(None, max_length=200)
    tags: list[str] = Field(default_factory=list, max_length=50)
    metadata: dict[str, Any] | None = None


class SubmitJobs(Payload):
    """Submit the jobs, and say who does. A dry run checks everything and stores nothing."""

    jobs: list[JobParams] = Field(min_length=1, max_length=MOST_JOBS)
    by: str | None = Field(None, max_length=200)
    dry_run: bool = False


def submit_jobs(resources: Resources, params: SubmitJobs, invocation: Invocation) -> dict[str, Any]:
    db = resources.database.connection()
    jobs = _new_jobs(params)
    if invocation.tenant is not None:
        jobs = [_within(job, invocation.tenant) for job in jobs]
    with db.transaction() as transaction:
        submitted = submit(db, resources.job_types, jobs, invocation.clock)
        if invocation.tenant is not None:
            _require_own(db, jobs, submitted, invocation.tenant)
        if invocation.caller is not None:
            _note(db, invocation.caller.name, submitted)
        if params.dry_run:
            raise Rollback(transaction)
    if params.dry_run:
        return {"dry_run": {"jobs": len(submitted), "created": _created(submitted)}}
    return {
        "jobs": [_shown(one, asked) for one, asked in zip(submitted, params.jobs, strict=True)],
        "created": _created(submitted),
        "sent": resources.publisher.publish_submitted(submitted),
    }


def _note(db: Connection, by: str, submitted: Sequence[Submitted]) -> None:
    """Note who has submitted over HTTP: one row for a request, since each job has `created_by`."""
    single = submitted[0].id if len(submitted) == 1 else ""
    detail = {
        "jobs": len(submitted),
        "created": _created(submitted),
        "job_types": sorted({one.job_type for one in submitted}),
    }
    audit.note(db, Actor(by), "job.submit", kind="job" if single else "jobs", id_=single, detail=detail)


def _new_jobs(params: SubmitJobs) -> list[NewJob]:
    """Return the jobs, with an id for each that another job of the call names."""
    named = [job.ref for job in params.jobs if job.ref is not None]
    ids = dict(zip(named, new_ids(len(named)), strict=True))
    if len(ids) < len(named):
        twice = next(name for name in named if named.count(name) > 1)
        raise JobRefused(f"two jobs of this call have the ref '{twice}': a dependency on it would be ambiguous")
    return [new_job(job, ids, params.by) for job in params.jobs]


def _within(job: NewJob, tenant: str) -> NewJob:
    """Return the job as a caller who is bound to this tenant may submit it."""
    if job.tenant not in (None, tenant):
        raise JobRefused(f"tenant '{job.tenant}': this token is bound to the tenant '{tenant}'; nothing was stored")
    if job.group is not None:
        raise JobRefused("group: groups belong to the whole stack, and this token is bound to a tenant")
    return replace(job, tenant=tenant)


def _require_own(db: Connection, jobs: Sequence[NewJob], submitted: Sequence[Submitted], tenant: str) -> None:
    """Refuse jobs that would follow another tenant's, or whose idempotency key another tenant's job has."""
    named = [id_ for job in jobs for id_ in (job.parent_id, *(on.job_id for on in job.depends_on)) if id_]
    if named:
        whole_ids(db, "job", named, tenant)
    if found := [one.id for one in submitted if not one.created]:
        try:
            whole_ids(db, "job", found, tenant)
        except JobUnknown:
            raise JobRefused("another job has this idempotency_key: choose another one; nothing was stored") from None


def new_job(job: JobParams, ids: Mapping[str, str], by: str | None) -> NewJob:
    """Return the job. `ids` are those of the jobs that it may name by their `ref`."""
    given = job.model_dump(exclude={"ref", "delay_seconds", "timeout_seconds", "depends_on"})
    return NewJob(
        **given,
        id=ids[job.ref] if job.ref is not None else None,
        delay=None if job.delay_seconds is None else timedelta(seconds=job.delay_seconds),
        timeout=None if job.timeout_seconds is None else timedelta(seconds=job.timeout_seconds),
        depends_on=[_dependency(one, ids) for one in job.depends_on],
        created_by=by,
    )


def _dependency(wanted: DependencyParams, ids: Mapping[str, str]) -> Dependency:
    return Dependency(ids.get(wanted.job, wanted.job), wanted.type, wanted.on_failure)


def _created(submitted: Sequence[Submitted]) -> int:
    return sum(one.created for one in submitted)


def _shown(one: Submitted, asked: JobParams) -> dict[str, Any]:
    ref = {} if asked.ref is None else {"ref": asked.ref}
    return {
        "id": one.id,
        "job_type": one.job_type,
        "lane": one.lane,
        "status": one.status,
        "created": one.created,
    } | ref
