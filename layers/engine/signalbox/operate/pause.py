"""Pausing jobs one by one or by filter, and resuming them. What runs is not stopped.

A job may be held twice: by a pause of its own, and by one of its type, lane, tenant or key. It goes on when both have
ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from signalbox.errors import TransitionRefused
from signalbox.jobs.status import JobState
from signalbox.operate.bulk import Done, Order, Stage, Step, Terms, ids_of
from signalbox.operate.filters import Selection
from signalbox.operate.listing import bound, count_by_status, require_known, states_of
from signalbox.packs.registries import Catalogue
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
MAY_PAUSE = (JobState.PENDING, JobState.QUEUED)


def pause(db: Connection, catalogue: Catalogue, selection: Selection, terms: Terms) -> Done:
    """Counts `paused`."""
    _check(db, catalogue, selection, MAY_PAUSE, "paused: only one that waits or is on its way can be")

    def step(ids: Sequence[str], _: timedelta) -> Step:
        db.execute(SQL["pause"], {"ids": list(ids), "by": terms.by.name})
        return Step({"paused": len(ids)}, ids)

    return Order(db, bound(db, selection), terms, "job.pause", Counter(paused=0)).carry_out(Stage(MAY_PAUSE, step))


def resume(db: Connection, catalogue: Catalogue, selection: Selection, terms: Terms) -> Done:
    """Counts `resumed`, and `held`: those that stay paused with what they belong to."""
    paused = (JobState.PAUSED,)
    _check(db, catalogue, selection, paused, "resumed: only one that is paused can be")
    order = Order(db, bound(db, selection), terms, "job.resume", Counter(resumed=0))
    return finish_resuming(order, order.carry_out(Stage(paused, Resuming(db, own=True).step)))


@dataclass(frozen=True, slots=True)
class Resuming:
    """`own`: pauses that were meant for a job alone end, too."""

    db: Connection
    own: bool

    def step(self, ids: Sequence[str], wait: timedelta) -> Step:
        found = self.db.execute(SQL["resume"], {"ids": list(ids), "wait": wait, "own": self.own}).fetchall()
        resumed = [id_ for id_, held, _ in found if not held]
        return Step({"resumed": len(resumed)}, ids_of(found), [id_ for id_, _, due in found if due and id_ in resumed])


def finish_resuming(order: Order, done: Done) -> Done:
    """With those that something else still holds."""
    held = count_by_status(order.db, replace(order.selection, status=JobState.PAUSED.value)).get(JobState.PAUSED, 0)
    return replace(done, counts={**done.counts, "held": held})


def _check(db: Connection, catalogue: Catalogue, selection: Selection, states: Sequence[JobState], what: str) -> None:
    selection.require_any()
    require_known(db, catalogue, selection)
    if selection.ids is not None:
        found = states_of(db, selection.ids)
        if not set(found.values()) & set(states):
            id_, state = next(iter(found.items()))
            raise TransitionRefused(f"job {id_} is {state} and can't be {what}")
