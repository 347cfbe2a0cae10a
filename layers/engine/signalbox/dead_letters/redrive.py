"""Redrive what failed for good: try it again, because somebody who has fixed the cause says so.

    named ones → restart → answer
    a filter → bulk action → restart a batch → … → answer; the task advance_bulk_actions restarts the rest

A job starts again with all its attempts, at once or spread by a rate, and `dispatch_jobs` sends it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from psycopg.rows import class_row

from signalbox.aws.invoke_async import FunctionInvoker
from signalbox.budget import Budget
from signalbox.dead_letters.letters import OPEN, require_found
from signalbox.dead_letters.redrive_checks import Candidate, refusals
from signalbox.dead_letters.restart import BATCH, Redrive, read, restart
from signalbox.errors import JobRefused, PayloadRefused
from signalbox.operate import bulk_actions
from signalbox.operate.audit import Actor
from signalbox.operate.bulk_actions import BulkAction, BulkActionStopped
from signalbox.operate.filters import DeadLetterFilter
from signalbox.operate.listing import MOST_COUNTED
from signalbox.packs.job_payload import MOST_BYTES, check_payload
from signalbox.packs.registries import JobTypeRegistry
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
SAMPLE = 10
Announce = Callable[[Sequence[str]], None]


def redrive(
    db: Connection,
    job_types: JobTypeRegistry,
    invoker: FunctionInvoker,
    selection: DeadLetterFilter,
    by: Actor,
    *,
    now: datetime,
    budget: Budget,
    payload: Mapping[str, Any] | None = None,
    rate_per_minute: int | None = None,
    announce: Announce = lambda _: None,
) -> dict[str, Any]:
    """Redrive the dead letters named, all or none; of those that a filter finds, the ones that can be.

    A filter finds open ones unless it names a status. `announce` receives the ids of the jobs, after each commit.
    """
    selection = _checked(selection, payload, rate_per_minute)
    if selection.ids is None:
        selection = selection.model_copy(update={"until": _until(db, selection)})
        kept = bulk_actions.create(db, "redrive", selection, by, budget, rate_per_minute=rate_per_minute)
        return proceed(db, invoker, kept, now=now, budget=budget, announce=announce)
    ids = _named(db, selection)
    edited = None if payload is None else _edited(db, job_types, ids[0], payload)
    done = Redrive(by, now, rate_per_minute, edited=edited, announce=announce)
    restart(db, invoker, ids, done)
    return _answer(done, len(ids) - done.redriven)


def preview(
    db: Connection,
    job_types: JobTypeRegistry,
    invoker: FunctionInvoker,
    selection: DeadLetterFilter,
    *,
    now: datetime,
    payload: Mapping[str, Any] | None = None,
    rate_per_minute: int | None = None,
) -> dict[str, Any]:
    """Say what a redrive would do, and change nothing."""
    selection = _checked(selection, payload, rate_per_minute)
    if selection.ids is None:
        values = {**selection.values, "limit": MOST_COUNTED + 1}
        candidates = [Candidate(*row) for row in db.execute(SQL["preview"], values).fetchall()]
    else:
        ids = _named(db, selection)
        if payload is not None:
            _edited(db, job_types, ids[0], payload)
        candidates = read(db, ids)
    more = len(candidates) > MOST_COUNTED
    del candidates[MOST_COUNTED:]
    refused = refusals(candidates, invoker.stack)
    going = [one for one in candidates if one.id not in refused]
    pace = Redrive(Actor(""), now, rate_per_minute)
    return {
        "dry_run": True,
        "count": len(going),
        "more": more,
        "last_at": _text(pace.at(len(going) - 1)) if going else None,
        "sample": [one.shown for one in going[:SAMPLE]],
        "refused": _sample(refused),
    }


def proceed(
    db: Connection,
    invoker: FunctionInvoker,
    kept: BulkAction,
    *,
    now: datetime,
    budget: Budget,
    announce: Announce = lambda _: None,
) -> dict[str, Any]:
    """Make a pass of a bulk action: to its end, or as far as the budget and its rate allow."""
    done = Redrive(kept.by, now, kept.rate_per_minute, kept.next_at, kept.id, announce=announce)
    walk = _Walk(db, invoker, kept.letter_filter, done, kept.cursor)
    try:
        with suppress(BulkActionStopped):
            walk.run(budget)
    finally:
        bulk_actions.leave(db, kept.id, cursor=walk.cursor, done=walk.at_end)
    left = 0 if walk.at_end else count_left(db, kept.letter_filter, walk.cursor)
    return {**_answer(done, left), "bulk_action": kept.id}


def count_left(db: Connection, selection: DeadLetterFilter, cursor: Mapping[str, str] | None) -> int:
    """Count the dead letters that an action has not come to, up to one more than 10,000."""
    return len(_pick(db, selection, cursor, MOST_COUNTED + 1))


@dataclass(frozen=True, slots=True)
class _Picked:
    id: str
    source: str
    last_failed_at: datetime


@dataclass(slots=True)
class _Walk:
    """Walk over the dead letters, the oldest failure first."""

    db: Connection
    invoker: FunctionInvoker
    selection: DeadLetterFilter
    done: Redrive
    cursor: dict[str, str] | None
    at_end: bool = field(default=False)

    def run(self, budget: Budget) -> None:
        while not budget.spent and (room := self.done.room):
            picked = _pick(self.db, self.selection, self.cursor, room)
            batch = self._allowed(picked)
            if batch:
                restart(self.db, self.invoker, [one.id for one in batch], self.done)
                self.cursor = {"at": batch[-1].last_failed_at.isoformat(), "id": batch[-1].id}
            if len(batch) < room:
                self.at_end = len(batch) == len(picked)
                return

    def _allowed(self, picked: Sequence[_Picked]) -> Sequence[_Picked]:
        """Return them up to the first invocation that is too many for this pass."""
        invocations = [place for place, one in enumerate(picked) if one.source == "invocation"]
        too_many = invocations[self.done.invocations_left :]
        return picked[: too_many[0]] if too_many else picked


def _checked(
    selection: DeadLetterFilter, payload: Mapping[str, Any] | None, rate_per_minute: int | None
) -> DeadLetterFilter:
    selection.require_any()
    if payload is not None and len(selection.ids or ()) != 1:
        raise PayloadRefused("an edited payload needs exactly one dead letter: give its id")
    if rate_per_minute is not None and not 1 <= rate_per_minute <= 6000:
        raise PayloadRefused(f"a rate of {rate_per_minute} a minute is not between 1 and 6000")
    if selection.ids is None and selection.status is None:
        return selection.model_copy(update={"status": [str(status) for status in OPEN]})
    return selection


def _until(db: Connection, selection: DeadLetterFilter) -> datetime:
    """Return the end of the failures that are meant, so that a job which fails again is not redriven again."""
    [(now,)] = db.execute(SQL["read_clock"]).fetchall()
    found: datetime = min(selection.until or now, now)
    return found


def _named(db: Connection, selection: DeadLetterFilter) -> list[str]:
    """Return the ids that are named, the oldest failure first; all of them must exist."""
    ids = [one.id for one in _pick(db, selection, None, BATCH)]
    require_found(selection.ids or (), dict.fromkeys(ids))
    return ids


def _pick(db: Connection, selection: DeadLetterFilter, cursor: Mapping[str, str] | None, limit: int) -> list[_Picked]:
    """Return those that follow the cursor, the oldest failure first: parents before children."""
    place = {"after_at": cursor and cursor["at"], "after_id": cursor and cursor["id"]}
    with db.cursor(row_factory=class_row(_Picked)) as found:
        return found.execute(SQL["pick"], {**selection.values, **place, "limit": limit}).fetchall()


def _edited(db: Connection, job_types: JobTypeRegistry, id_: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of the job that the new payload changes, once its type's model has accepted it."""
    [one] = read(db, [id_])
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


def _answer(done: Redrive, left: int) -> dict[str, Any]:
    return {
        "redriven": done.redriven,
        "left": min(left, MOST_COUNTED),
        "more": left > MOST_COUNTED,
        "last_at": _text(done.last),
        "refused": _sample(done.refused),
    }


def _sample(refused: Mapping[str, str]) -> dict[str, Any]:
    sample = [{"id": id_, "reason": why} for id_, why in list(refused.items())[:SAMPLE]]
    return {"count": len(refused), "sample": sample}


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else instant.astimezone(UTC).isoformat()
