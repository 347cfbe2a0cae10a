"""Trying now what would be tried later: jobs that wait for a retry, a cap, a snooze or their time become due."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

from signalbox.errors import TransitionRefused
from signalbox.jobs.status import JobState
from signalbox.operate.bulk import Done, Order, Stage, Step, Terms, ids_of
from signalbox.operate.filters import Selection
from signalbox.operate.listing import bound, require_known
from signalbox.packs.registries import Catalogue
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
_INSTEAD = {
    JobState.QUEUED: "it is on its way to a worker already",
    JobState.RUNNING: "it is being worked on",
    JobState.PAUSED: "`signalbox resume` lets it go on",
    JobState.COMPLETED: "it has succeeded; submit another job to do it again",
    JobState.CANCELLED: "that is for good; submit another job instead",
}


def retry_now(db: Connection, catalogue: Catalogue, selection: Selection, terms: Terms) -> Done:
    """Counts `hastened`. A single job that can't be tried now is refused with what to do instead."""
    selection.require_any()
    require_known(db, catalogue, selection)
    if selection.ids is not None and len(selection.ids) == 1:
        _refuse_unfit(db, selection.ids[0])

    def step(ids: Sequence[str], wait: timedelta) -> Step:
        found = ids_of(db.execute(SQL["hasten"], {"ids": list(ids), "wait": wait}).fetchall())
        return Step({"hastened": len(found)}, found, found)

    return Order(db, bound(db, selection), terms, "job.retry", Counter(hastened=0)).carry_out(
        Stage((JobState.PENDING,), step)
    )


def _refuse_unfit(db: Connection, id_: str) -> None:
    status, unmet, waits, dead_letter = db.execute(SQL["find"], {"id": id_}).fetchone() or ("", 0, False, None)
    if status == JobState.PENDING:
        why = (
            f"it waits for {unmet:,} other jobs to end"
            if unmet
            else None
            if waits
            else "it is due, and dispatch_jobs sends it within a minute"
        )
    elif status == JobState.FAILED:
        why = f"`signalbox redrive {dead_letter or id_}` tries its dead letter again"
    else:
        why = _INSTEAD[JobState(status)]
    if why:
        raise TransitionRefused(f"job {id_} is {status}, so there is nothing to hasten: {why}")
