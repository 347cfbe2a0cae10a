"""Submit jobs in the caller's transaction, one or a hundred thousand, each checked before any is stored.

    check → insert (or COPY) → wait for parents → the commit: join groups, resolve what has ended → send

`dispatch_jobs` sends what is not sent after the commit, for whatever reason. Until the commit the submit locks no row
of another job, a group or a cap, because a caller's transaction may last.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NamedTuple

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from signalbox.errors import JobRefused, Refused
from signalbox.jobs.retry_routing import LOST_AFTER
from signalbox.packs.job_payload import JobPayload, check_payload
from signalbox.packs.job_type import JobType, TypeCap
from signalbox.packs.registries import JobTypeRegistry, RegisteredJobType
from signalbox.postgres.queries import load_queries
from signalbox.postgres.uuid7 import new_ids
from signalbox.submit.checks import (
    by_payload,
    check_dependencies,
    check_limits,
    check_replacing,
    check_routing,
    check_shared_text,
    check_text,
    lane_for,
    refuse,
)
from signalbox.submit.dependencies import TupleCursor, edges_of, refuse_circles, resolved_states, wait_for_parents
from signalbox.submit.new_job import NewJob, Submitted
from signalbox.submit.rows import JobRow, SharedColumns

SQL = load_queries(__file__)
COPY_FROM = 200  # jobs; below that one INSERT is as fast
# With keys they go by a table of their own, where each submit leaves dead rows to a vacuum: that is for few large ones.
COPY_WITH_KEYS_FROM = 1000

# The fields that jobs may share, without tags, metadata and dependencies, which need not be hashable.
_COMMON = attrgetter(
    "job_type", "priority", "lane", "delay", "at", "cap_key", "group", "parent_id", "schedule_id",
    "max_attempts", "timeout", "name", "created_by", "category",
)  # fmt: skip


Caps = dict[tuple[str, str], TypeCap]  # by the kind and key of the cap's row


class Shared(NamedTuple):
    """Hold what the jobs of one submit share."""

    columns: dict[object, SharedColumns]
    caps: Caps
    lost_after: timedelta
    estimates: Mapping[str, str] = MappingProxyType({})  # how long a type's jobs take; an INSERT looks itself


def submit(
    db: psycopg.Connection[Any],
    job_types: JobTypeRegistry,
    jobs: Sequence[NewJob],
    now: datetime,
    lost_after: timedelta = LOST_AFTER,
) -> list[Submitted]:
    """Store all of the jobs or none, in the order given. Inside a caller's transaction they commit with it."""
    if not jobs:
        return []
    cursor = db.cursor(row_factory=tuple_row)  # whatever rows the caller's own cursors make
    with_keys = any(job.idempotency_key is not None for job in jobs)
    enough = len(jobs) >= (COPY_WITH_KEYS_FROM if with_keys else COPY_FROM)
    many = enough and all(job.replace_key is None for job in jobs)
    shared = Shared({}, {}, lost_after, _estimates(cursor, jobs) if many else {})
    caps = shared.caps
    rows = [] if many else list(_rows(job_types, jobs, now, shared))
    if len(rows) == 1 and not jobs[0].depends_on and jobs[0].group is None and not _undeclared(cursor, caps):
        return _store(cursor, rows)
    try:
        with db.transaction():
            # The server stores part of many jobs while the next are checked; a refusal then rolls all of them back.
            submitted = _copy_many(cursor, jobs, _rows(job_types, jobs, now, shared)) if many else _store(cursor, rows)
            both = list(zip(submitted, jobs, strict=True))
            waits = [(one.id, on) for one, job in both for on in job.depends_on if one.created]
            edges = edges_of(waits, {job.id: one.id for one, job in both if job.id and not one.created})
            states, parents = wait_for_parents(cursor, edges, lost_after) if edges else ({}, [])
            groups = Counter(job.group for one, job in both if job.group and one.created)
            older = sorted(set(parents) - {one.id for one in submitted if one.created})
            _leave_for_the_commit(cursor, older, groups, _undeclared(cursor, caps))
    except psycopg.errors.CheckViolation as error:
        if error.diag.constraint_name != "group_takes_jobs":
            raise
        raise JobRefused(f"{error.diag.message_primary}; nothing was stored") from None
    if older and db.info.transaction_status == TransactionStatus.IDLE:
        states |= resolved_states(cursor, edges, lost_after)
    return [one._replace(status=states.get(one.id, one.status)) for one in submitted] if states else submitted


def check_job(job_types: JobTypeRegistry, job: NewJob, now: datetime) -> None:
    """Raise what submitting the job would raise, as far as the job alone can tell."""
    list(_rows(job_types, [job], now, Shared({}, {}, LOST_AFTER)))


def _rows(job_types: JobTypeRegistry, jobs: Sequence[NewJob], now: datetime, shared: Shared) -> Iterator[JobRow]:
    known: dict[str, RegisteredJobType] = {}
    edges = []
    for place, (job, id_) in enumerate(zip(jobs, new_ids(len(jobs)), strict=True)):
        try:
            if job.job_type not in known:
                known[job.job_type] = job_types.find(job.job_type)
            row = _row(known[job.job_type], job, job.id or id_, now, shared)
        except Refused as error:
            if len(jobs) == 1:
                raise
            raise type(error)(f"job {place + 1} of {len(jobs)}: {error}; nothing was stored") from None
        if job.depends_on:
            edges += [(row.id, on.job_id) for on in job.depends_on]
        yield row
    refuse_circles(edges)


def _row(known: RegisteredJobType, job: NewJob, id_: str, now: datetime, shared: Shared) -> JobRow:
    job_type = known.type
    payload = check_payload(known, job.payload)
    known.check(payload)
    text = payload.model_dump_json()
    if fault := check_text(job, text):
        refuse(job_type, fault)
    if known.shapes_jobs or job.job_type != job_type.name:
        job = by_payload(job_type, job, payload, id_)
    cap_key = count_by_cap(known, job, payload, shared.caps)
    single = job.id or job.depends_on or job.tags or job.metadata is not None or job.replace_key
    kind = None if single else (_COMMON(job), cap_key)
    columns = shared.columns.get(kind)
    if columns is None:
        faults = (
            check_shared_text(job),
            check_routing(job_type, job),
            check_limits(job_type, job),
            check_replacing(job),
            check_dependencies(job),
        )
        refuse(job_type, *faults)
        columns = SharedColumns(_columns(job_type, job, now, shared) | {"cap_key": cap_key})
        if kind is not None:
            shared.columns[kind] = columns
    if job.correlation_id is not None and job_type.correlation is not None:
        refuse(job_type, "its type takes its correlation_id from the payload: give none")
    subject = _column(payload, job_type.subject)
    correlation = job.correlation_id or _column(payload, job_type.correlation)
    return JobRow(id_, text, job.idempotency_key, subject, correlation, job.tenant, columns, job.replace_key)


def _columns(job_type: JobType, job: NewJob, now: datetime, shared: Shared) -> dict[str, Any]:
    """Return the columns that it may share with other jobs, in COPY's order."""
    at = job.at if job.at else now + job.delay if job.delay else None
    waits = bool(job.depends_on)
    due = not waits and (at is None or at <= now)
    return {
        "job_type": job_type.name,
        "job_name": job.name,
        "job_category": job.category or job_type.category,
        "lane": lane_for(job_type, job),
        "priority": job.priority,
        "status": "queued" if due else "pending",
        "payload_version": job_type.version,
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
        "send_at": None if waits else now + shared.lost_after if due else at,
        "queued_at": now if due else None,
        "estimated_duration": shared.estimates.get(job_type.name),
    }


def _estimates(cursor: TupleCursor, jobs: Sequence[NewJob]) -> dict[str, str]:
    types = sorted({job.job_type for job in jobs})
    return dict(cursor.execute(SQL["find_estimates"], {"types": types}).fetchall())


def _column(payload: Any, field_name: str | None) -> str | None:
    value = getattr(payload, field_name) if field_name else None
    return None if value is None else str(value)


def count_by_cap(known: RegisteredJobType, job: NewJob, payload: JobPayload, caps: Caps) -> str | None:
    """Return the key that the type's cap counts the job by, and note the cap."""
    cap = known.type.cap
    if cap is None or (cap.per != "type" and job.cap_key):
        return job.cap_key
    key = known.type.name if cap.per == "type" else known.cap_key(payload, job.tenant)
    caps["type" if cap.per == "type" else "key", key] = cap
    return job.cap_key if cap.per == "type" else key


def _undeclared(cursor: TupleCursor, caps: Caps) -> list[dict[str, Any]]:
    """Return the caps that types declare and that have no row yet, by which claims count."""
    if not caps:
        return []
    rows = [
        {"kind": kind, "key": key, "max_running": cap.max_running, "rate": cap.rate, "per_seconds": cap.per_seconds}
        for (kind, key), cap in caps.items()
    ]
    found = set(cursor.execute(SQL["find_undeclared"], {"caps": json.dumps(rows)}).fetchall())
    return [row for row in rows if (row["kind"], row["key"]) in found]


def declare_caps(db: psycopg.Connection[Any], caps: Caps) -> None:
    """Store the caps that types declare and that have no row yet; the transaction's end does it."""
    cursor = db.cursor(row_factory=tuple_row)
    if found := _undeclared(cursor, caps):
        _leave_for_the_commit(cursor, [], {}, found)


def _leave_for_the_commit(
    cursor: TupleCursor, parents: Sequence[str], groups: Mapping[str, int], caps: Sequence[Mapping[str, Any]]
) -> None:
    """Leave to the commit what would lock rows that others need; the trigger of the table does it."""
    if groups and (sealed := cursor.execute(SQL["find_sealed"], {"groups": list(groups)}).fetchone()):
        raise JobRefused(f"group '{sealed[0]}' is sealed: it accepts no more jobs; nothing was stored")
    if parents or groups or caps:
        values = {"parents": list(parents), "groups": json.dumps(groups), "caps": json.dumps(caps)}
        cursor.execute(SQL["leave"], values)


def _store(cursor: TupleCursor, rows: Sequence[JobRow]) -> list[Submitted]:
    plain = [row for row in rows if row.replace_key is None]
    stored = dict(zip((row.id for row in plain), _insert(cursor, plain), strict=True))
    # In one order: else two submits of the same keys could deadlock. Of two with one key, the last one wins.
    for row in sorted(rows, key=lambda row: row.replace_key or ""):
        if row.replace_key is not None:
            [(id_, status, created)] = cursor.execute(SQL["replace"], {"rows": _as_json([row])}).fetchall()
            stored[row.id] = _submitted(row)._replace(id=id_, status=status, created=created)
    return [stored[row.id] for row in rows]


def _insert(cursor: TupleCursor, rows: Sequence[JobRow]) -> list[Submitted]:
    stored: set[str] = set()
    first: dict[str, tuple[str, str]] = {}
    # This runs once, unless the first job with a key is pruned just before we look for it: then the key is free.
    while missing := [row for row in rows if row.id not in stored and row.id not in first]:
        # Insert in the order of the keys: else two submits of the same keys could deadlock.
        text = {"rows": _as_json(sorted(missing, key=lambda row: (row.idempotency_key or "", row.common.answer[0])))}
        stored |= {id_ for (id_,) in cursor.execute(SQL["insert"], text).fetchall()}
        first |= _find_first(cursor, [row for row in missing if row.id not in stored])
    return [_submitted(row) if row.id in stored else _found(row, *first[row.id]) for row in rows]


def _find_first(cursor: TupleCursor, rows: Sequence[JobRow]) -> dict[str, tuple[str, str]]:
    """Return the first job with the key of each of these, by the id that the row would have had."""
    if not rows:
        return {}
    keys = [{"id": row.id, "job_type": row.common.answer[0], "idempotency_key": row.idempotency_key} for row in rows]
    found = cursor.execute(SQL["find_first"], {"rows": json.dumps(keys)}).fetchall()
    return {asked: (id_, status) for asked, id_, status in found}


def _as_json(rows: Sequence[JobRow]) -> str:
    return "[" + ",".join(row.as_json() for row in rows) + "]"


def _submitted(row: JobRow) -> Submitted:
    job_type, lane, status = row.common.answer
    return Submitted(row.id, job_type, lane, row.tenant, status)


def _found(row: JobRow, id_: str, status: str) -> Submitted:
    return _submitted(row)._replace(id=id_, status=status, created=False)


def _copy_many(cursor: TupleCursor, jobs: Sequence[NewJob], rows: Iterator[JobRow]) -> list[Submitted]:
    if all(job.idempotency_key is None for job in jobs):
        return [_submitted(row) for row in _copy(cursor, "copy", rows)]
    copied = list(_copy(cursor, "copy_aside", rows))
    stored = {id_ for (id_,) in cursor.execute(SQL["take_aside"]).fetchall()}
    cursor.execute(SQL["clear_aside"])
    missing = [row for row in copied if row.id not in stored]
    first = _find_first(cursor, missing)
    freed = [row for row in missing if row.id not in first]  # the first job has just been pruned
    late = dict(zip((row.id for row in freed), _insert(cursor, freed), strict=True))
    return [_submitted(row) if row.id in stored else late.get(row.id) or _found(row, *first[row.id]) for row in copied]


def _copy(cursor: TupleCursor, query: str, rows: Iterator[JobRow]) -> Iterator[JobRow]:
    with cursor.copy(SQL[query]) as copy:
        while block := list(islice(rows, 1000)):
            copy.write("".join([row.as_line() for row in block]))
            yield from block
