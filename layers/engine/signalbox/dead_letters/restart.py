"""Restart a batch of what failed for good, in one transaction.

    lock → judge → job back to pending, dead letter redriven, audit row → commit

Of two redrives at once the second finds the job no longer failed. An invocation is made again, by Lambda, before its
dead letter says so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from signalbox.aws.errors import unavailable
from signalbox.aws.invoke_async import FunctionInvoker
from signalbox.dead_letters.redrive_checks import Candidate, refusals
from signalbox.errors import TransitionRefused
from signalbox.operate import bulk_actions
from signalbox.operate.audit import Actor
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
BATCH = 500
MOST_INVOCATIONS = 60  # a minute, if no rate says otherwise: Lambda can't delay an invocation


@dataclass(slots=True)
class Redrive:
    """Say who redrives, why and how fast, and count what was done so far."""

    by: Actor
    now: datetime
    rate_per_minute: int | None = None
    begins: datetime | None = None  # when the first job starts, if not now
    bulk_action: str | None = None  # the id of the one that this is a pass of
    edited: Mapping[str, Any] | None = None  # the columns of the job that another payload changes
    announce: Callable[[Sequence[str]], None] = lambda _: None  # with the ids of the jobs, after each commit
    redriven: int = 0
    invoked: int = 0
    last: datetime | None = None
    refused: dict[str, str] = field(default_factory=dict)

    def at(self, place: int) -> datetime:
        """Return when the nth job starts at this rate."""
        begins = max(self.begins or self.now, self.now)
        return begins + timedelta(minutes=place / self.rate_per_minute) if self.rate_per_minute else self.now

    @property
    def room(self) -> int:
        """Return how many more may start in the minute to come. The others can still be stopped."""
        if not self.rate_per_minute:
            return BATCH
        left = self.now + timedelta(minutes=1) - self.at(self.redriven)
        return max(0, min(BATCH, math.ceil(left / timedelta(minutes=1) * self.rate_per_minute)))

    @property
    def invocations_left(self) -> int:
        return (self.rate_per_minute or MOST_INVOCATIONS) - self.invoked


def restart(db: Connection, invoker: FunctionInvoker, ids: Sequence[str], redrive: Redrive) -> None:
    """Restart these dead letters: all or none of those that are named, of a bulk action's the ones that can be."""
    with db.transaction():
        candidates = _lock(db, ids)
        refused = refusals(candidates, invoker.stack)
        if redrive.bulk_action is None and refused:
            raise TransitionRefused(_why_none(refused))
        going = [one for one in candidates if one.id not in refused and one.source != "invocation"]
        times = {one.id: redrive.at(redrive.redriven + place) for place, one in enumerate(going)}
        _restart(db, [one for one in going if one.source == "job"], times, redrive.edited)
        _send_again(db, [one for one in going if one.source == "message"], times)
        _mark_redriven(db, going, times, redrive)
        _record(db, redrive, len(going), refused)
    redrive.redriven += len(going)
    redrive.refused |= refused
    redrive.last = max([*times.values(), *([redrive.last] if redrive.last else [])], default=None)
    for one in candidates:
        if one.source == "invocation" and one.id not in refused:
            _invoke_again(db, invoker, one.id, redrive)
    redrive.announce([one.job_id for one in going if one.source == "job" and one.job_id])


def _lock(db: Connection, ids: Sequence[str]) -> list[Candidate]:
    """Lock the dead letters, their jobs, and what these depend on, until this transaction ends.

    Lock jobs before dead letters, as a worker does that fails a job, and each in the order of their ids.
    """
    db.execute(SQL["lock_jobs"], {"ids": list(ids)})
    db.execute(SQL["lock_letters"], {"ids": list(ids)})
    return read(db, ids)


def read(db: Connection, ids: Sequence[str]) -> list[Candidate]:
    rows = db.execute(SQL["read"], {"ids": list(ids)}).fetchall()
    found = {row[0]: Candidate(*row) for row in rows}
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
    if edited is not None:
        db.execute(SQL["begin_anew"], {"jobs": [one.job_id for one in going]})


def _send_again(db: Connection, going: Sequence[Candidate], times: Mapping[str, datetime]) -> None:
    if going:
        rows = [{"id": one.job_id, "at": times[one.id].isoformat()} for one in going]
        db.execute(SQL["send_again"], {"rows": json.dumps(rows)})


def _mark_redriven(db: Connection, going: Sequence[Candidate], times: Mapping[str, datetime], redrive: Redrive) -> None:
    rows = [{"id": one.id, "at": times[one.id].isoformat()} for one in going]
    values = {"by": redrive.by.name, "reason": redrive.by.reason, "edited": redrive.edited is not None}
    db.execute(SQL["mark_redriven"], {**values, "rows": json.dumps(rows)})


def _record(db: Connection, redrive: Redrive, redriven: int, refused: Mapping[str, str]) -> None:
    """Record the batch with the action that it belongs to."""
    if redrive.bulk_action is not None:
        counts = {"redriven": redriven, "refused": len(refused)}
        sample = [{"id": id_, "reason": why} for id_, why in refused.items()]
        next_at = redrive.at(redrive.redriven + redriven) if redrive.rate_per_minute else None
        bulk_actions.record(db, redrive.bulk_action, counts, refused=sample, next_at=next_at)


def _invoke_again(db: Connection, invoker: FunctionInvoker, id_: str, redrive: Redrive) -> None:
    """Invoke in its own transaction, as Lambda takes time. The call comes first: its slot skips a second one."""
    if redrive.invocations_left <= 0:
        return  # it counts as left
    with db.transaction():
        [one] = _lock(db, [id_])
        if why := refusals([one], invoker.stack).get(id_):
            redrive.refused[id_] = why
            _record(db, redrive, 0, {id_: why})
            return
        _invoke(invoker, one)
        _mark_redriven(db, [one], {id_: redrive.now}, redrive)
        _record(db, redrive, 1, {})
    redrive.invoked += 1
    redrive.redriven += 1
    redrive.last = max(redrive.last or redrive.now, redrive.now)


def _invoke(invoker: FunctionInvoker, one: Candidate) -> None:
    function = str(one.function)
    with unavailable(f"dead letter {one.id} was not redriven: {function} does not accept invocations"):
        invoker.invoke(function, one.payload)


def _why_none(refused: Mapping[str, str]) -> str:
    [(id_, why), *others] = refused.items()
    more = f" (and {len(others)} others can't be redriven either)" if others else ""
    return f"dead letter {id_} can't be redriven: {why}{more}; nothing was changed"
