"""Check a new job. Each check returns what is wrong with it, or None."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

from signalbox.errors import JobRefused
from signalbox.packs.job_payload import MOST_BYTES, JobPayload
from signalbox.packs.job_type import CATEGORIES, JobType, Lane, Route, lane_of
from signalbox.postgres.pg_text import fault_of_json, holds_nul
from signalbox.submit.new_job import NewJob

NUL = "it holds a NUL character, which PostgreSQL can't store"
# A worker's whole time, less what the worker needs for itself.
LONGEST = {lane: timedelta(seconds=870 if lane is Lane.HEAVY else 330) for lane in Lane}
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def lane_for(job_type: JobType, job: NewJob) -> Lane:
    return Lane(job.lane) if job.lane else lane_of(job_type, job.priority)


def refuse(job_type: JobType, *faults: str | None) -> None:
    """Raise for what would later be refused, or never run."""
    for fault in faults:
        if fault is not None:
            raise JobRefused(f"job of type '{job_type.name}': {fault}")


def check_text(job: NewJob, text: str) -> str | None:
    if len(text) > MOST_BYTES // 4 and len(text.encode()) > MOST_BYTES:  # a character has four bytes at most
        return f"its payload has more than {MOST_BYTES // 1000} kB; put the data into S3 and their key into the payload"
    if holds_nul(text) or "\0" in f"{job.idempotency_key}{job.correlation_id}{job.tenant}":
        return NUL
    return None


def check_shared_text(job: NewJob) -> str | None:
    if "\0" in "".join(filter(None, (job.cap_key, job.group, job.name, *job.tags))):
        return NUL
    if job.metadata is not None and (fault := fault_of_json(job.metadata)):
        return f"PostgreSQL can't store its metadata as JSON: {fault}"
    return None


def check_routing(job_type: JobType, job: NewJob) -> str | None:
    if not 1 <= job.priority <= 10:
        return f"priority {job.priority} is not between 1 (first) and 10"
    if job.category is not None and job.category not in CATEGORIES:
        return f"there is no category '{job.category[:50]}'; there are {', '.join(CATEGORIES)}"
    if job.lane is not None and job.lane not in job_type.allowed_lanes:
        return f"it may not run in lane '{job.lane}'; allowed are {', '.join(sorted(job_type.allowed_lanes))}"
    if job.at is not None and (job.delay is not None or job.at.tzinfo is None):
        return "give a delay or an instant with its time zone, and not both"
    return None


def check_limits(job_type: JobType, job: NewJob) -> str | None:
    timeout = job_type.timeout if job.timeout is None else job.timeout
    lane = lane_for(job_type, job)
    longest = LONGEST[lane]
    if not timedelta(0) < timeout <= longest:
        return (
            f"a time-out of {_seconds(timeout)} is not above zero and within the {_seconds(longest)} of lane '{lane}'"
        )
    if job.max_attempts is not None and not 1 <= job.max_attempts <= 100:
        return f"max_attempts {job.max_attempts} is not between 1 and 100"
    return None


def _seconds(length: timedelta) -> str:
    return f"{length.total_seconds():g} s"


def check_replacing(job: NewJob) -> str | None:
    if job.replace_key is None:
        return None
    if not 1 <= len(job.replace_key) <= 200 or "\0" in job.replace_key:
        return "its replace_key is not a text of 1 to 200 characters without NUL"
    if job.idempotency_key or job.id or job.depends_on or job.group:
        return "a replace_key goes with no idempotency_key, id, depends_on or group: they would be another job's"
    return None


def by_payload(job_type: JobType, job: NewJob, payload: JobPayload, id_: str) -> NewJob:
    """Return the job with what its type makes of its name, payload and id: lane and time-out, name, tags."""
    changes: dict[str, Any] = {}
    if (route := job_type.route) is not None:
        changes |= _routed(job_type, route, job, str(getattr(payload, route.by)))
    if job_type.job_name is not None:
        if job.name is not None:
            refuse(job_type, "its type names it by the payload: give no name")
        values = {name: "" if value is None else value for name, value in vars(payload).items()}
        changes["name"] = job_type.job_name.format_map(values)
    if job.replace_key is not None and "id" in job_type.tags.values():
        refuse(job_type, "its type tags it with its id, which a replace_key would change: give none")
    if job_type.tags or job.job_type != job_type.name:
        found = [(tag, id_ if name == "id" else getattr(payload, name)) for tag, name in job_type.tags.items()]
        found += [("as", job.job_type)] if job.job_type != job_type.name else []
        changes["tags"] = (*job.tags, *(f"{tag}:{value}" for tag, value in found if value is not None))
    return replace(job, **changes) if changes else job


def _routed(job_type: JobType, route: Route, job: NewJob, value: str) -> dict[str, Any]:
    lane = route.lanes.get(value)
    if lane is None:
        refuse(job_type, f"no lane is for the {route.by} '{value[:50]}'; there are {', '.join(route.lanes)}")
    if job.lane not in (None, lane):
        refuse(job_type, f"lane '{job.lane}' contradicts the {route.by} '{value}', which is for lane '{lane}'")
    return {"lane": lane, "timeout": job.timeout or route.timeouts.get(value)}


def check_dependencies(job: NewJob) -> str | None:
    waits_for = [dependency.job_id for dependency in job.depends_on]
    if job.id is not None and not _ID.fullmatch(job.id):
        return f"its id '{job.id[:50]}' is not a UUID in lower case"
    if job.id in waits_for:
        return "it would depend on itself"
    if len(set(waits_for)) < len(waits_for) or not all(map(_ID.fullmatch, waits_for)):
        return "depends_on takes the ids of jobs, each once"
    return None
