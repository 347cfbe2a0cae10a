"""Compare the ledger with what each schedule should have fired, each quarter of an hour.

A slot without any row is recorded as missed, once. Then each task's policy decides whether all of its missed slots run,
or the latest, or none; never a slot that is later than the task allows. A catch-up run receives its slot, and the
ledger keeps it from running twice however often it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from pydantic import Field

from signalbox.errors import SignalboxError
from signalbox.ledger.context import Context, Done
from signalbox.ledger.ledger import DISABLED, Trigger
from signalbox.packs.payload import Payload
from signalbox.packs.schedule import Schedule
from signalbox.packs.task import CatchUp, Overlap, Task
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
# EventBridge and Lambda may deliver late; until then a slot is late, not missed.
GRACE = timedelta(minutes=10)
LOOKBACK_HOURS = 168
# Runs handed over for one task in one go: the rest follow a quarter of an hour later.
MOST_CATCH_UPS = 100


class Params(Payload):
    """Say how far back to look."""

    lookback_hours: int = Field(LOOKBACK_HOURS, ge=1, le=24 * 90)


def reconcile_slots(context: Context) -> Done:
    """Record missed slots and catch up. Items are the slots found missed. One task's error stops no other."""
    missed, troubles = 0, []
    for task in context.enabled_tasks:
        if task.schedule is None:
            continue
        if context.budget.spent:
            return Done(missed, more=True)
        try:
            missed += _record_missed(context, task)
            _catch_up(context, task)
        except SignalboxError as error:
            context.log.warning("task.unreconciled", extra={"task": task.name, "error": str(error)})
            troubles.append(error)
    if troubles:
        raise troubles[0]
    return Done(missed)


def missing(expected: Iterable[datetime], present: Iterable[datetime]) -> list[datetime]:
    """Return the slots that should be in the ledger and are not, in order."""
    return sorted(set(expected) - set(present))


def lookback_of(task: Task, hours: int = LOOKBACK_HOURS) -> timedelta:
    """Return how far back to look for slots of the task: not among rows that may be pruned."""
    return min(timedelta(hours=hours), task.retention / 2)


def _record_missed(context: Context, task: Task) -> int:
    since, until = _window(context, task), context.now - GRACE
    values = {"task": task.name, "since": since, "until": until, "disabled": DISABLED}
    present = context.db.execute(SQL["list_slots"], values).fetchall()
    expected = Schedule.parse(task.schedule or "").between(since, until)
    slots = missing(expected, (row[0].astimezone(UTC) for row in present))
    if not slots:
        return 0
    values = {"task": task.name, "slots": slots, "now": context.now, "worker_id": context.worker_id}
    recorded = context.db.execute(SQL["record_missed"], values).rowcount
    context.log.warning("slots.missed", extra={"task": task.name, "count": recorded, "latest": slots[-1].isoformat()})
    metrics = context.metrics.of(task.name)
    metrics.count("MissedSlots", recorded)
    metrics.write()
    return recorded


def _window(context: Context, task: Task) -> datetime:
    """Return the instant after which slots are looked for: not before the task had its schedule."""
    values = {"task": task.name, "schedule": task.schedule}
    row = context.db.execute(SQL["note_schedule"], values).fetchone()
    known_since = row[0].astimezone(UTC) if row else context.now
    # One moment earlier, as the first slot itself counts.
    return max(known_since - timedelta(microseconds=1), context.now - lookback_of(task, context.params.lookback_hours))


def _catch_up(context: Context, task: Task) -> None:
    if task.catch_up is CatchUp.SKIP:
        return
    most = 1 if task.catch_up is CatchUp.LATEST or task.overlap is Overlap.FORBID else MOST_CATCH_UPS
    values = {
        "task": task.name,
        "since": context.now - task.max_lateness,
        "until": context.now,
        "latest": task.catch_up is CatchUp.LATEST,
        "most": most,
    }
    for (slot,) in context.db.execute(SQL["list_due"], values).fetchall():
        context.invoker.rerun(task, slot.astimezone(UTC), Trigger.CATCH_UP)
        context.log.info("slot.caught_up", extra={"task": task.name, "slot": slot.isoformat()})
