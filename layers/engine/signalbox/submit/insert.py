"""Submitting jobs: in the caller's transaction, one or a hundred thousand, each checked before any is stored.

    check → insert (or COPY) → wait for parents → the commit: join groups, settle what has ended → send

What is not sent after the commit, for whatever reason, `dispatch_jobs` sends. Until the commit no row of another job, a
group or a control is held: a transaction of the caller's may last.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple

import psycopg
from psycopg.pq import TransactionStatus

from signalbox.errors import JobRefused, Refused
from signalbox.packs.job_payload import MOST_BYTES, JobPayload, check_payload
from signalbox.packs.job_type import JobType, Lane, TypeCap, lane_of
from signalbox.packs.registries import Catalogue, Known
from signalbox.postgres.connection import Connection
from signalbox.postgres.pg_text import fault_of_json, holds_nul
from signalbox.postgres.queries import load_queries
from signalbox.postgres.uuid7 import new_ids
from signalbox.publish.lanes import Notice
from signalbox.submit.dependencies import Dependency, edges_of, refuse_circles, settled_states, wait_for_parents
from signalbox.submit.rows import Common, JobRow

SQL = load_queries(__file__)
COPY_FROM = 200  # jobs; below that one INSERT is as fast
# How long a sent job may stay unclaimed before dispatch_jobs looks whether its message got lost.
LOST_AFTER = timedelta(minutes=2)
NUL = "it holds a NUL character, which PostgreSQL can't store"
# A worker's whole time, less what it needs for itself.
LONGEST = {lane: timedelta(seconds=870 if lane is Lane.HEAVY else 330) for lane in Lane}

# What jobs may have in common, beside tags, metadata and dependencies, which need not be hashable.
_COMMON = attrgetter(
    "job_type", "priority", "lane", "delay", "at", "tenant", "cap_key", "group", "parent_id", "schedule_id",
    "max_attempts", "timeout", "name", "created_by",
)  # fmt: skip
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job to be. Only its type is needed, and what its payload asks for."""

    job_type: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None  # for others of the same submit to depend on
    idempotency_key: str | None = None  # a second submit of the type with it gives the first job
    priority: int = 5
    lane: str | None = None
    delay: timedelta | None = None
    at: datetime | None = None
    tenant: str | None = None
    cap_key: str | None = None
    group: str | None = None
    parent_id: str | None = None
    schedule_id: str | None = None
    depends_on: Sequence[Dependency] = ()
    max_attempts: int | None = None
    timeout: timedelta | None = None
    name: str | None = None
    correlation_id: str | None = None
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] | None = None
    created_by: str | None = None


Caps = dict[tuple[str, str], TypeCap]  # by the kind and key of the control that they become


class Shared(NamedTuple):
    """What the jobs of one submit have in common."""

    columns: dict[object, Common]
    caps: Caps


class Submitted(NamedTuple):
    """What became of one of them; a tuple, since there may be so many."""

    id: str
    job_type: str
    lane: str
    tenant: str | None
    status: str
    created: bool = True  # False: it had been submitted before


def submit(db: Connection, catalogue: Catalogue, jobs: Sequence[NewJob], now: datetime) -> list[Submitted]:
    """Stores all of them or none, in the order given. In a transaction of the caller's they come and go with it."""
    if not jobs:
        return []
    many = len(jobs) >= COPY_FROM and all(job.idempotency_key is None for job in jobs)
    caps: Caps = {}
    rows = [] if many else list(_rows(catalogue, jobs, now, caps))
    if len(rows) == 1 and not jobs[0].depends_on and jobs[0].group is None and not _undeclared(db, caps):
        return _insert(db, rows)
    try:
        with db.transaction():
            # The server stores a part of many while the next is checked; what is refused then takes all of it back.
            submitted = _copy(db, _rows(catalogue, jobs, now, caps)) if many else _insert(db, rows)
            both = list(zip(submitted, jobs, strict=True))
            waits = [(one.id, on) for one, job in both for on in job.depends_on if one.created]
            edges = edges_of(waits, {job.id: one.id for one, job in both if job.id and not one.created})
            states, parents = wait_for_parents(db, edges, LOST_AFTER) if edges else ({}, [])
            groups = Counter(job.group for one, job in both if job.group and one.created)
            older = sorted(set(parents) - {one.id for one in submitted if one.created})
            _leave_for_the_commit(db, older, groups, _undeclared(db, caps))
    except psycopg.errors.CheckViolation as error:
        if error.diag.constraint_name != "group_takes_jobs":
            raise
        raise JobRefused(f"{error.diag.message_primary}; nothing was stored") from None
    if older and db.info.transaction_status == TransactionStatus.IDLE:
        states |= settled_states(db, edges, LOST_AFTER)
    return [one._replace(status=states.get(one.id, one.status)) for one in submitted]


def check_job(catalogue: Catalogue, job: NewJob, now: datetime) -> None:
    """Raises what submitting it would raise, as far as the job alone can tell."""
    list(_rows(catalogue, [job], now, {}))


def _rows(catalogue: Catalogue, jobs: Sequence[NewJob], now: datetime, caps: Caps) -> Iterator[JobRow]:
    known: dict[str, Known] = {}
    shared_by = Shared({}, caps)
    edges = []
    for place, (job, id_) in enumerate(zip(jobs, new_ids(len(jobs)), strict=True)):
        try:
            if job.job_type not in known:
                known[job.job_type] = catalogue.find(job.job_type)
            row = _row(known[job.job_type], job, job.id or id_, now, shared_by)
        except Refused as error:
            if len(jobs) == 1:
                raise
            raise type(error)(f"job {place + 1} of {len(jobs)}: {error}; none of them was stored") from None
        if job.depends_on:
            edges += [(row.id, on.job_id) for on in job.depends_on]
        yield row
    refuse_circles(edges)


def _row(known: Known, job: NewJob, id_: str, now: datetime, shared_by: Shared) -> JobRow:
    job_type = known.type
    payload = check_payload(known, job.payload)
    known.check(payload)
    text = payload.model_dump_json()
    if fault := _unstorable(job, text):
        _refuse(job_type, fault)
    cap_key = _count_by_cap(known, job, payload, shared_by.caps)
    single = job.id or job.depends_on or job.tags or job.metadata is not None
    kind = None if single else (_COMMON(job), cap_key)
    shared = shared_by.columns.get(kind)
    if shared is None:
        faults = (_unstorable_in_common(job), _unreachable(job_type, job), _unending(job_type, job), _waiting(job))
        _refuse(job_type, *faults)
        shared = Common(_columns(job_type, job, now) | {"cap_key": cap_key})
        if kind is not None:
            shared_by.columns[kind] = shared
    subject = _column(payload, job_type.subject)
    correlation = job.correlation_id or _column(payload, job_type.correlation)
    return JobRow(id_, text, job.idempotency_key, subject, correlation, shared)


def _columns(job_type: JobType, job: NewJob, now: datetime) -> dict[str, Any]:
    """Those that it may have in common with others, in the order of COPY's."""
    at = job.at if job.at else now + job.delay if job.delay else None
    waits = bool(job.depends_on)
    due = not waits and (at is None or at <= now)
    return {
        "job_type": job_type.name,
        "job_name": job.name,
        "job_category": job_type.category,
        "lane": _lane(job_type, job),
        "priority": job.priority,
        "status": "queued" if due else "pending",
        "payload_version": job_type.version,
        "tenant": job.tenant,
        "cap_key": job.cap_key,
        "job_group": job.group,
        "parent_job_id": job.parent_id,
        "schedule_id": job.schedule_id,
        "unmet_dependencies": len(job.depends_on),
        "tags": list(job.tags) or None,
        "metadata": None if job.metadata is None else json.dumps(job.metadata),
        "created_by": job.created_by,
        "max_attempts": job.max_attempts or job_type.retry.max_attempts,
        "timeout_ms": round((job.timeout or job_type.timeout).total_seconds() * 1000),
        "scheduled_for": at,
        "send_at": None if waits else now + LOST_AFTER if due else at,
        "queued_at": now if due else None,
    }


def _lane(job_type: JobType, job: NewJob) -> Lane:
    return Lane(job.lane) if job.lane else lane_of(job_type, job.priority)


def _column(payload: Any, field_name: str | None) -> str | None:
    value = getattr(payload, field_name) if field_name else None
    return None if value is None else str(value)


def _refuse(job_type: JobType, *faults: str | None) -> None:
    """Raises for what would be refused, or never run, later."""
    for fault in faults:
        if fault is not None:
            raise JobRefused(f"job of type '{job_type.name}': {fault}")


def _unstorable(job: NewJob, text: str) -> str | None:
    if len(text) > MOST_BYTES // 4 and len(text.encode()) > MOST_BYTES:  # a character has four bytes at most
        return f"its payload has more than {MOST_BYTES // 1000} kB; put the data into S3 and their key into the payload"
    if holds_nul(text) or "\0" in f"{job.idempotency_key}{job.correlation_id}":
        return NUL
    return None


def _unstorable_in_common(job: NewJob) -> str | None:
    if "\0" in "".join(filter(None, (job.tenant, job.cap_key, job.group, job.name, *job.tags))):
        return NUL
    if job.metadata is not None and (fault := fault_of_json(job.metadata)):
        return f"its metadata are no JSON that PostgreSQL can store: {fault}"
    return None


def _unreachable(job_type: JobType, job: NewJob) -> str | None:
    if not 1 <= job.priority <= 10:
        return f"priority {job.priority} is not between 1 (first) and 10"
    if job.lane is not None and job.lane not in job_type.allowed_lanes:
        return f"it may not run in lane '{job.lane}'; allowed are {', '.join(sorted(job_type.allowed_lanes))}"
    if job.at is not None and (job.delay is not None or job.at.tzinfo is None):
        return "give a delay or an instant with its time zone, and not both"
    return None


def _unending(job_type: JobType, job: NewJob) -> str | None:
    timeout = job_type.timeout if job.timeout is None else job.timeout
    lane = _lane(job_type, job)
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


def _waiting(job: NewJob) -> str | None:
    waits_for = [dependency.job_id for dependency in job.depends_on]
    if job.id is not None and not _ID.fullmatch(job.id):
        return f"its id '{job.id[:50]}' is no UUID in lower case"
    if job.id in waits_for:
        return "it would depend on itself"
    if len(set(waits_for)) < len(waits_for) or not all(map(_ID.fullmatch, waits_for)):
        return "depends_on takes the ids of jobs, each once"
    return None


def _count_by_cap(known: Known, job: NewJob, payload: JobPayload, caps: Caps) -> str | None:
    """Return the key that the type's cap counts the job by, and note the cap."""
    cap = known.type.cap
    if cap is None or (cap.per != "type" and job.cap_key):
        return job.cap_key
    key = known.type.name if cap.per == "type" else known.cap_key(payload, job.tenant)
    caps["type" if cap.per == "type" else "key", key] = cap
    return job.cap_key if cap.per == "type" else key


def _undeclared(db: Connection, caps: Caps) -> list[dict[str, Any]]:
    """The caps that types declare and that are no rows yet, by which claims count."""
    if not caps:
        return []
    rows = [
        {"kind": kind, "key": key, "max_running": cap.max_running, "rate": cap.rate, "per_seconds": cap.per_seconds}
        for (kind, key), cap in caps.items()
    ]
    found = set(db.execute(SQL["find_undeclared"], {"caps": json.dumps(rows)}).fetchall())
    return [row for row in rows if (row["kind"], row["key"]) in found]


def _leave_for_the_commit(
    db: Connection, parents: Sequence[str], groups: Mapping[str, int], caps: Sequence[Mapping[str, Any]]
) -> None:
    """What would hold rows that others need; the trigger of the table does it."""
    if groups and (sealed := db.execute(SQL["find_sealed"], {"groups": list(groups)}).fetchone()):
        raise JobRefused(f"group '{sealed[0]}' is sealed: it takes no further jobs; nothing was stored")
    if parents or groups or caps:
        values = {"parents": list(parents), "groups": json.dumps(groups), "caps": json.dumps(caps)}
        db.execute(SQL["leave"], values)


def _insert(db: Connection, rows: Sequence[JobRow]) -> list[Submitted]:
    stored: set[str] = set()
    first: dict[str, tuple[str, str]] = {}
    # Once, unless the first job with a key is pruned just before we look for it: then the key is free.
    while missing := [row for row in rows if row.id not in stored and row.id not in first]:
        # In the order of the keys: else two submits of the same ones could wait for each other.
        text = {"rows": _as_json(sorted(missing, key=lambda row: (row.idempotency_key or "", row.common.told[0])))}
        stored |= {id_ for (id_,) in db.execute(SQL["insert"], text).fetchall()}
        if any(row.id not in stored for row in missing):
            first |= {asked: (id_, status) for asked, id_, status in db.execute(SQL["find_first"], text).fetchall()}
    return [_submitted(row) if row.id in stored else _found(row, *first[row.id]) for row in rows]


def _as_json(rows: Sequence[JobRow]) -> str:
    return "[" + ",".join(row.as_json() for row in rows) + "]"


def _submitted(row: JobRow) -> Submitted:
    return Submitted(row.id, *row.common.told)


def _found(row: JobRow, id_: str, status: str) -> Submitted:
    return _submitted(row)._replace(id=id_, status=status, created=False)


def _copy(db: Connection, rows: Iterator[JobRow]) -> list[Submitted]:
    submitted: list[Submitted] = []
    with db.cursor().copy(SQL["copy"]) as copy:
        while block := list(islice(rows, 1000)):
            copy.write("".join([row.as_line() for row in block]))
            submitted += map(_submitted, block)
    return submitted


def read_notices(db: Connection, ids: Sequence[str]) -> list[Notice]:
    """What is to be sent for those of these jobs that may begin."""
    return [Notice(*row) for row in db.execute(SQL["read_due"], {"ids": list(ids)}).fetchall()]


def notices_of(submitted: Sequence[Submitted]) -> list[Notice]:
    """What is to be sent once they are committed: those that are new and need not wait."""
    return [
        Notice(new.id, new.job_type, new.lane, new.tenant)
        for new in submitted
        if new.created and new.status == "queued"
    ]


__all__ = ["Dependency", "NewJob", "Submitted", "check_job", "notices_of", "read_notices", "submit"]
