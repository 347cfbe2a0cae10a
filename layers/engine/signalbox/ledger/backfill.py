"""Backfill one task over a range of past slots, at a rate; a backfill can be watched, paused and stopped.

The plan is rows: a slot is `pending`, then `dispatched` to an invocation of its own, then has its run's result. The run
itself writes that in the transaction that ends it. So after any crash the task `advance_backfills` finds the true state
at its next minute; and a slot can't run twice, because the ledger refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import islice
from typing import Any, Literal

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from signalbox.errors import BackfillRefused, BackfillStateRefused, BackfillUnknown
from signalbox.ledger.ledger import RunClaim, RunEnd, RunStatus, Slot
from signalbox.packs.schedule import Schedule
from signalbox.packs.task import Task
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
MOST_SLOTS = 100_000
MOST_PLANNED = 1000  # slots that a preview lists


class BackfillStatus(StrEnum):
    """Name the state of a backfill."""

    RUNNING = "running"  # next: paused, cancelled, or completed once no slot is open
    PAUSED = "paused"  # no slot is started; those at work finish
    CANCELLED = "cancelled"  # final; the slots not yet started never will be
    COMPLETED = "completed"  # every slot has ended; resumed, it tries the failed ones again


class SlotStatus(StrEnum):
    """Name the state of one slot of a backfill."""

    PENDING = "pending"
    DISPATCHED = "dispatched"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"  # it had succeeded before, or its run found nothing to do
    CANCELLED = "cancelled"


_SLOT_STATUS = {
    RunStatus.SUCCEEDED: SlotStatus.SUCCEEDED,
    RunStatus.SKIPPED: SlotStatus.SKIPPED,
    RunStatus.FAILED: SlotStatus.FAILED,
}

TRANSITIONS: dict[BackfillStatus, frozenset[BackfillStatus]] = {
    BackfillStatus.RUNNING: frozenset(
        {BackfillStatus.PAUSED, BackfillStatus.CANCELLED, BackfillStatus.COMPLETED},
    ),
    BackfillStatus.PAUSED: frozenset({BackfillStatus.RUNNING, BackfillStatus.CANCELLED}),
    BackfillStatus.CANCELLED: frozenset(),
    BackfillStatus.COMPLETED: frozenset({BackfillStatus.RUNNING}),
}


@dataclass(frozen=True, slots=True)
class BackfillRequest:
    """Say what to run again, how fast, and why."""

    task: Task
    first: datetime
    last: datetime
    rate_per_minute: int
    params: dict[str, Any]
    force: bool
    requested_by: str | None = None
    reason: str | None = None
    only: Literal["failed", "missing"] | None = None  # of the range's slots; None: all
    newest_first: bool = False
    most_failures: int | None = None


@dataclass(frozen=True, slots=True)
class Backfill:
    """Hold one row, with its slots counted by status."""

    id: str
    task: str
    range_from: datetime
    range_to: datetime
    rate_per_minute: int
    force: bool
    params: dict[str, Any]
    status: str
    reason: str | None
    requested_by: str | None
    changed_by: str | None  # who paused, resumed or cancelled it last
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    slots: dict[str, int]
    newest_first: bool
    most_failures: int | None


def slots_of(order: BackfillRequest, clock: datetime) -> list[datetime]:
    """Return the slots of the range, ends included. Refuse a range with no or too many slots, or in the future."""
    if order.task.schedule is None:
        raise BackfillRefused(f"task '{order.task.name}' has no schedule, so a range of time has no slots")
    if order.first > order.last:
        raise BackfillRefused(f"the range ends ({_text(order.last)}) before it starts ({_text(order.first)})")
    if order.last > clock:
        raise BackfillRefused(
            f"the range ends at {_text(order.last)}, and it is {_text(clock)}: give a range in the past"
        )
    fires = Schedule.parse(order.task.schedule).between(order.first - timedelta(microseconds=1), order.last)
    slots = list(islice(fires, MOST_SLOTS + 1))
    if not slots:
        span = f"between {_text(order.first)} and {_text(order.last)}"
        raise BackfillRefused(f"{order.task.schedule}, the schedule of '{order.task.name}', has no slot {span}")
    if len(slots) > MOST_SLOTS:
        raise BackfillRefused(f"the range holds more than {MOST_SLOTS:,} slots: split it")
    return slots


def preview(connection: Connection, order: BackfillRequest, clock: datetime) -> dict[str, Any]:
    """Return what a backfill would do, slot by slot in its order, without doing any of it."""
    states = chosen_slots(connection, order, clock)
    succeeded = sum(state == "succeeded" for state in states.values())
    to_run = len(states) if order.force else len(states) - succeeded
    planned = [
        {"slot": slot.isoformat(), "status": state, "runs": order.force or state != "succeeded"}
        for slot, state in (reversed(states.items()) if order.newest_first else states.items())
    ]
    return {
        "task": order.task.name,
        "slots": len(states),
        "already_succeeded": succeeded,
        "to_run": to_run,
        "first": min(states).isoformat() if states else None,
        "last": max(states).isoformat() if states else None,
        "minutes": -(-to_run // order.rate_per_minute),
        "plan": planned[:MOST_PLANNED],
    }


def chosen_slots(connection: Connection, order: BackfillRequest, clock: datetime) -> dict[datetime, str]:
    """Return the chosen slots, oldest first, each with its state: succeeded, running, failed or missing."""
    slots = slots_of(order, clock)
    found = connection.execute(SQL["list_states"], {"task": order.task.name, "slots": slots}).fetchall()
    known = {slot.astimezone(UTC): state for slot, state in found}
    states = {slot: known.get(slot, "missing") for slot in slots}
    return {slot: state for slot, state in states.items() if order.only in (None, state)}


def create(connection: Connection, order: BackfillRequest, clock: datetime) -> Backfill:
    """Store the backfill with all its slots, or nothing; slots that have succeeded are marked, not run."""
    slots = list(chosen_slots(connection, order, clock))
    if not slots:
        raise BackfillRefused(f"none of the range's slots is {order.only}: there is nothing to run")
    with connection.transaction():
        row = connection.execute(
            SQL["create"],
            {
                "task": order.task.name,
                "range_from": order.first,
                "range_to": order.last,
                "rate": order.rate_per_minute,
                "force": order.force,
                "params": Jsonb(order.params),
                "requested_by": order.requested_by,
                "reason": order.reason,
                "newest_first": order.newest_first,
                "most_failures": order.most_failures,
                "slots": slots,
            },
        ).fetchone()
        return find(connection, str(row[0]) if row else "")


def find(connection: Connection, backfill_id: str) -> Backfill:
    """Return one backfill, or raise an error that names the id."""
    with connection.cursor(row_factory=class_row(Backfill)) as cursor:
        backfill = cursor.execute(SQL["find"], {"id": backfill_id}).fetchone()
    if backfill is None:
        raise BackfillUnknown(f"no backfill has the id '{backfill_id}': `signalbox backfill list` lists them")
    return backfill


def list_newest(connection: Connection, status: str | None, limit: int) -> list[Backfill]:
    with connection.cursor(row_factory=class_row(Backfill)) as cursor:
        return cursor.execute(SQL["list_newest"], {"status": status, "limit": limit}).fetchall()


def pause(connection: Connection, backfill_id: str, by: str | None, reason: str | None) -> Backfill:
    """Start no further slot. Pausing a paused backfill again updates who paused it, when and why."""
    order = {"by": by, "reason": reason}
    return _move(connection, backfill_id, BackfillStatus.PAUSED, order, SQL["pause"], again=True)


def resume(connection: Connection, backfill_id: str, by: str | None, reason: str | None) -> Backfill:
    """Continue a paused backfill, or try the failed slots of a completed one again."""
    found = find(connection, backfill_id)
    if found.status == BackfillStatus.COMPLETED and not found.slots["failed"]:
        raise BackfillStateRefused(
            f"backfill {backfill_id} is completed and none of its slots failed: there is nothing to resume"
        )
    return _move(connection, backfill_id, BackfillStatus.RUNNING, {"by": by, "reason": reason}, SQL["resume"])


def cancel(connection: Connection, backfill_id: str, by: str | None, reason: str | None) -> Backfill:
    return _move(connection, backfill_id, BackfillStatus.CANCELLED, {"by": by, "reason": reason}, SQL["cancel"])


def change(connection: Connection, backfill_id: str, rate: int, by: str | None, reason: str | None) -> Backfill:
    """Set how many slots start in a minute, from the next minute on."""
    values = {"id": backfill_id, "rate": rate, "by": by, "reason": reason}
    if connection.execute(SQL["change"], values).fetchone() is None:
        found = find(connection, backfill_id)
        raise BackfillStateRefused(f"backfill {backfill_id} is {found.status}, and starts no more slots")
    return find(connection, backfill_id)


def record_slot(connection: Connection, backfill_id: str, slot: Slot, claim: RunClaim, ending: RunEnd) -> None:
    """Record the slot's result in the transaction that ends its run. With work left the slot stays open."""
    if ending.more and ending.reason is None:
        return
    values = {
        "id": backfill_id,
        "slot": slot.instant,
        "status": _SLOT_STATUS[ending.status],
        "run_id": claim.run_id,
    }
    connection.execute(SQL["record_slot"], values)


def record_unclaimed_slot(connection: Connection, backfill_id: str, slot: Slot, claim: RunClaim) -> None:
    """Handle a slot that this run may not take.

    If the slot has succeeded in another run, that result counts for the backfill too. If another slot of the task was
    in the way, it is dispatched again. While another worker has it, that worker records its end.
    """
    values = {"id": backfill_id, "slot": slot.instant, "task": slot.task.name}
    if claim.status is RunStatus.MISSED:
        put_back(connection, backfill_id, [slot.instant])
    else:
        connection.execute(SQL["record_if_done"], values)


def put_back(connection: Connection, backfill_id: str, slots: Sequence[datetime]) -> None:
    """Make these slots pending again."""
    connection.execute(SQL["put_back"], {"id": backfill_id, "slots": slots})


def _move(
    connection: Connection,
    backfill_id: str,
    to: BackfillStatus,
    order: dict[str, str | None],
    statement: Any,
    *,
    again: bool = False,
) -> Backfill:
    with connection.transaction():
        found = find(connection, backfill_id)
        sources: Sequence[str] = [source for source, targets in TRANSITIONS.items() if to in targets]
        values = {"id": backfill_id, **order, "sources": [*sources, to] if again else sources}
        moved = connection.execute(statement, values).fetchone()
        if moved is None:
            raise BackfillStateRefused(
                f"backfill {backfill_id} is {found.status}: only one that is {' or '.join(sources)} can become {to}"
            )
        return find(connection, backfill_id)


def _text(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat()
