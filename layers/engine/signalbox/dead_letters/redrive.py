"""Redrive what failed for good: try it again, because somebody who has fixed the cause says so.

    pick → hold → judge → job back to pending, dead letter redriven, audit row → commit, a batch at a time

A job starts again with all its attempts, at once or spread by a rate, and `dispatch_jobs` sends it. Of two redrives at
once the second finds the job no longer failed. An invocation is made again, by Lambda, before its dead letter says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from psycopg.rows import class_row

from signalbox.aws.errors import unavailable
from signalbox.aws.invoke_async import FunctionInvoker
from signalbox.dead_letters.letters import OPEN, require_found
from signalbox.dead_letters.redrive_checks import Candidate, refusals
from signalbox.errors import JobRefused, PayloadRefused, TransitionRefused
from signalbox.operate.filters import DeadLetterFilter
from signalbox.packs.job_payload import MOST_BYTES, check_payload
from signalbox.packs.registries import JobTypeRegistry
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
BATCH = 500
MOST = 10_000  # of one request: the answer says how many are left for another one
SAMPLE = 10
MOST_INVOCATIONS = 60  # a minute, if no rate says otherwise: Lambda can't delay an invocation


@dataclass(frozen=True, slots=True)
class RedriveRequest:
    """Say who redrives, why, and how fast."""

    by: str
    reason: str | None
    now: datetime
    rate_per_minute: int | None

    def at(self, place: int) -> datetime:
        """Return when the nth job starts at this rate."""
        return self.now + timedelta(minutes=place / self.rate_per_minute) if self.rate_per_minute else self.now


@dataclass(slots=True)
class RedriveResult:
    """Count what a request has done so far."""

    redriven: int = 0
    invoked: int = 0
    last: datetime | None = None
    refused: dict[str, str] = field(default_factory=dict)


def redrive(
    db: Connection,
    job_types: JobTypeRegistry,
    invoker: FunctionInvoker,
    selection: DeadLetterFilter,
    *,
    by: str,
    reason: str | None,
    now: datetime,
    dry_run: bool = False,
    payload: Mapping[str, Any] | None = None,
    rate_per_minute: int | None = None,
    announce: Callable[[Sequence[str]], None] = lambda _: None,
) -> dict[str, Any]:
    """Redrive the dead letters named, all or none of a batch; of those that a filter finds, the ones that can be.

    A filter finds open ones unless it names a status. A dry run changes nothing and says what would happen. `announce`
    receives the ids of the jobs, after the commit of each batch.
    """
    request = RedriveRequest(by, reason, now, _checked_rate(rate_per_minute))
    selection = _bounded(selection, payload)
    total, ids = _pick(db, selection)
    if selection.ids is not None:
        require_found(selection.ids, dict.fromkeys(ids))
    edited = None if payload is None else _edited(db, job_types, ids[0], payload)
    if dry_run:
        return _preview(db, invoker, ids, total, request)
    result = RedriveResult()
    for batch in _batches(ids):
        announce(_redrive_batch(db, invoker, batch, request, result, strict=selection.ids is not None, edited=edited))
    left = total - result.redriven - len(result.refused)
    return {
        "redriven": result.redriven,
        "left": left,
        "last_at": _text(result.last),
        "refused": _sample(result.refused),
    }


def _bounded(selection: DeadLetterFilter, payload: Mapping[str, Any] | None) -> DeadLetterFilter:
    selection.require_any()
    if payload is not None and len(selection.ids or ()) != 1:
        raise PayloadRefused("an edited payload needs exactly one dead letter: give its id")
    if selection.ids is None and selection.status is None:
        return selection.model_copy(update={"status": [str(status) for status in OPEN]})
    return selection


def _checked_rate(rate: int | None) -> int | None:
    if rate is not None and not 1 <= rate <= 6000:
        raise PayloadRefused(f"a rate of {rate} a minute is not between 1 and 6000")
    return rate


def _pick(db: Connection, selection: DeadLetterFilter) -> tuple[int, list[str]]:
    """Return how many there are, and the ids to begin with, the oldest failure first: parents before children."""
    rows = db.execute(SQL["pick"], {**selection.values, "limit": MOST}).fetchall()
    return (rows[0][1] if rows else 0), [id_ for id_, _ in rows]


def _preview(
    db: Connection, invoker: FunctionInvoker, ids: Sequence[str], total: int, request: RedriveRequest
) -> dict[str, Any]:
    candidates = _read(db, ids)
    refused = refusals(candidates, invoker.stack)
    going = [one for one in candidates if one.id not in refused]
    return {
        "dry_run": True,
        "count": len(going),
        "left": total - len(ids),
        "more": total > len(ids),
        "last_at": _text(request.at(len(going) - 1)) if going else None,
        "sample": [one.shown for one in going[:SAMPLE]],
        "refused": _sample(refused),
    }


def _redrive_batch(
    db: Connection,
    invoker: FunctionInvoker,
    ids: Sequence[str],
    request: RedriveRequest,
    result: RedriveResult,
    *,
    strict: bool,
    edited: Mapping[str, Any] | None,
) -> list[str]:
    """Redrive one batch, and return the jobs that start again."""
    with db.transaction():
        candidates = _lock(db, ids)
        refused = refusals(candidates, invoker.stack)
        if strict and refused:
            raise TransitionRefused(_why_none(refused))
        going = [one for one in candidates if one.id not in refused and one.source != "invocation"]
        times = {one.id: request.at(result.redriven + place) for place, one in enumerate(going)}
        _restart(db, [one for one in going if one.source == "job"], times, edited)
        _send_again(db, [one for one in going if one.source == "message"], times)
        _mark_redriven(db, going, times, request, edited is not None)
    result.redriven += len(going)
    result.refused |= refused
    if times:
        result.last = max(times.values())
    for one in candidates:
        if one.source == "invocation" and one.id not in refused:
            _invoke_again(db, invoker, one.id, request, result)
    return [one.job_id for one in going if one.source == "job" and one.job_id]


def _lock(db: Connection, ids: Sequence[str]) -> list[Candidate]:
    """Lock the dead letters, their jobs, and what these depend on, until this transaction ends.

    Lock jobs before dead letters, as a worker does that fails a job, and each in the order of their ids.
    """
    db.execute(SQL["lock_jobs"], {"ids": list(ids)})
    db.execute(SQL["lock_letters"], {"ids": list(ids)})
    return _read(db, ids)


def _read(db: Connection, ids: Sequence[str]) -> list[Candidate]:
    with db.cursor(row_factory=class_row(Candidate)) as cursor:
        found = {one.id: one for one in cursor.execute(SQL["read"], {"ids": list(ids)}).fetchall()}
    return [found[id_] for id_ in ids if id_ in found]  # one may have been archived since


def _restart(
    db: Connection, going: Sequence[Candidate], times: Mapping[str, datetime], edited: Mapping[str, Any] | None
) -> None:
    if not going:
        return
    rows = [{"id": one.job_id, "at": times[one.id].isoformat(), **(edited or {})} for one in going]
    groups = {one.job_group for one in going if one.job_group}
    db.execute(SQL["lock_groups"], {"groups": list(groups), "jobs": [one.job_id for one in going]})
    if groups:
        db.execute(SQL["uncount"], {"rows": json.dumps(rows)})
    db.execute(SQL["restart"], {"rows": json.dumps(rows)})


def _send_again(db: Connection, going: Sequence[Candidate], times: Mapping[str, datetime]) -> None:
    if going:
        rows = [{"id": one.job_id, "at": times[one.id].isoformat()} for one in going]
        db.execute(SQL["send_again"], {"rows": json.dumps(rows)})


def _mark_redriven(
    db: Connection, going: Sequence[Candidate], times: Mapping[str, datetime], request: RedriveRequest, was_edited: bool
) -> None:
    rows = [{"id": one.id, "at": times[one.id].isoformat()} for one in going]
    values = {"rows": json.dumps(rows), "by": request.by, "reason": request.reason, "edited": was_edited}
    db.execute(SQL["mark_redriven"], values)


def _invoke_again(
    db: Connection, invoker: FunctionInvoker, id_: str, request: RedriveRequest, result: RedriveResult
) -> None:
    """Invoke in its own transaction, as Lambda takes time. The call comes first: its slot skips a second one."""
    if result.invoked >= (request.rate_per_minute or MOST_INVOCATIONS):
        return  # it counts as left
    with db.transaction():
        [one] = _lock(db, [id_])
        if why := refusals([one], invoker.stack).get(id_):
            result.refused[id_] = why
            return
        _invoke(invoker, one)
        _mark_redriven(db, [one], {id_: request.now}, request, was_edited=False)
    result.invoked += 1
    result.redriven += 1
    result.last = max(result.last or request.now, request.now)


def _invoke(invoker: FunctionInvoker, one: Candidate) -> None:
    function = str(one.function)
    with unavailable(f"dead letter {one.id} was not redriven: {function} does not accept invocations"):
        invoker.invoke(function, one.payload)


def _edited(db: Connection, job_types: JobTypeRegistry, id_: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of the job that the new payload changes, once its type's model has accepted it."""
    [one] = _read(db, [id_])
    if one.source != "job":
        raise PayloadRefused(f"dead letter {id_} is of a lost {one.source}: only the payload of a job can be edited")
    known = job_types.find(one.job_type)
    model = check_payload(known, dict(payload))
    known.check(model)
    text = model.model_dump_json()
    if len(text.encode()) > MOST_BYTES or "\\u0000" in text:
        raise JobRefused(f"payload of job type '{one.job_type}': more than {MOST_BYTES // 1000} kB, or a NUL character")
    columns = {"subject": known.type.subject, "correlation": known.type.correlation}
    found = {name: getattr(model, source) for name, source in columns.items() if source}
    return {
        "payload": json.loads(text),
        "version": known.type.version,
        "correlation_field": known.type.correlation,
        **{name: str(value) for name, value in found.items() if value is not None},
    }


def _batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), BATCH):
        yield ids[start : start + BATCH]


def _why_none(refused: Mapping[str, str]) -> str:
    [(id_, why), *others] = refused.items()
    more = f" (and {len(others)} others can't be redriven either)" if others else ""
    return f"dead letter {id_} can't be redriven: {why}{more}; nothing was changed"


def _sample(refused: Mapping[str, str]) -> dict[str, Any]:
    sample = [{"id": id_, "reason": why} for id_, why in list(refused.items())[:SAMPLE]]
    return {"count": len(refused), "sample": sample}


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else instant.astimezone(UTC).isoformat()
