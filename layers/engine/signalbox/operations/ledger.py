"""List the ledger's runs, newest first, and show the state of each slot of each task."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Literal

from psycopg.rows import dict_row
from pydantic import Field

from signalbox.errors import PayloadRefused
from signalbox.invocation import Invocation, Resources
from signalbox.packs.payload import Instant, Payload
from signalbox.packs.registries import TaskRegistry
from signalbox.packs.schedule import Schedule
from signalbox.packs.task import Task
from signalbox.postgres.connection import Connection
from signalbox.postgres.json_rows import json_row
from signalbox.postgres.queries import load_queries
from signalbox.tasks.reconcile_slots import lookback_of

SQL = load_queries(__file__)
MOST_SLOTS = 20_000


class ListRuns(Payload):
    """Select runs that match every given filter."""

    task: str | None = None
    status: Literal["running", "succeeded", "failed", "skipped", "missed"] | None = None
    trigger: Literal["schedule", "manual", "backfill", "catch_up", "continuation"] | None = None
    since: Instant | None = None
    until: Instant | None = None
    limit: int = Field(50, ge=1, le=1000)
    before_id: int | None = Field(None, ge=1, le=2**63 - 1)
    after_id: int | None = Field(None, ge=0, le=2**63 - 1)


class ShowSlots(Payload):
    """Select a period, by default the last day, and all scheduled tasks or one."""

    task: str | None = None
    since: Instant | None = None
    until: Instant | None = None


def list_runs(resources: Resources, params: ListRuns, _: Invocation) -> dict[str, Any]:
    if params.task is not None:
        resources.tasks.find(params.task)
    with resources.database.connection().cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(SQL["list_runs"], params.model_dump()).fetchall()
    last = rows[-1]["id"] if len(rows) == params.limit else None
    return {"runs": [json_row(row) for row in rows], "next": last}


def show_slots(resources: Resources, params: ShowSlots, invocation: Invocation) -> dict[str, Any]:
    until = params.until or invocation.clock
    since = params.since or until - timedelta(days=1)
    if since > until:
        raise PayloadRefused(f"since {since.isoformat()} is after until {until.isoformat()}")
    db = resources.database.connection()
    return {
        "since": since.isoformat(),
        "until": until.isoformat(),
        "tasks": [_row(db, task, since, until, invocation.clock) for task in _wanted(resources.tasks, params.task)],
    }


def _wanted(registry: TaskRegistry, name: str | None) -> list[Task]:
    return [registry.find(name)] if name else [task for task in registry if task.schedule]


def _row(db: Connection, task: Task, since: datetime, until: datetime, clock: datetime) -> dict[str, Any]:
    values = {"task": task.name, "since": since, "until": until}
    found = db.execute(SQL["fold_slots"], values).fetchall()
    slots = {slot.astimezone(UTC): (status, items, runs) for slot, status, items, runs in found}
    # Earlier runs may have been pruned.
    first = max(since, clock - task.retention, _first_due(db, task) or clock)
    for slot in _expected(task, first, until):
        if slot not in slots:
            slots[slot] = (_unrecorded(task, slot, clock), 0, 0)
    return {
        "task": task.name,
        "schedule": task.schedule,
        "slots": [
            {"slot": slot.isoformat(), "status": status, "items": int(items), "runs": runs}
            for slot, (status, items, runs) in sorted(slots.items())
        ],
    }


def _first_due(db: Connection, task: Task) -> datetime | None:
    row = db.execute(SQL["find_first_due"], {"task": task.name, "schedule": task.schedule}).fetchone()
    return row[0].astimezone(UTC) if row and row[0] else None


def _unrecorded(task: Task, slot: datetime, clock: datetime) -> str:
    """Return the status of a slot without a row: no run comes for a slot that is too old to be found."""
    return "due" if slot > clock - lookback_of(task) else "missed"


def _expected(task: Task, since: datetime, until: datetime) -> list[datetime]:
    if task.schedule is None or since > until:
        return []
    fires = Schedule.parse(task.schedule).between(since - timedelta(microseconds=1), until)
    slots = list(islice(fires, MOST_SLOTS + 1))
    if len(slots) > MOST_SLOTS:
        raise PayloadRefused(
            f"task '{task.name}' has more than {MOST_SLOTS:,} slots in that time: choose a shorter time"
        )
    return slots
