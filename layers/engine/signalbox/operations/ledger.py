"""List the ledger's runs, newest first, show the state of each slot of each task, and find the newest gap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from operator import itemgetter
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
_SHORTEST_LOOK, _LONGEST_LOOK = timedelta(days=1), timedelta(days=7)
_INSTANT = timedelta(microseconds=1)
Slots = dict[datetime, tuple[Any, ...]]  # the status of each slot, its items and its runs


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


class FindGap(Payload):
    """Look for the newest slot before a time that was missed or failed, of all scheduled tasks or of one."""

    task: str | None = None
    before: Instant | None = None


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
        "tasks": _rows(db, _wanted(resources.tasks, params.task), since, until, invocation.clock),
    }


def find_gap(resources: Resources, params: FindGap, invocation: Invocation) -> dict[str, Any]:
    """Look back by a day, then by longer, until there is a gap, nothing older, or a second is left to answer in."""
    db, tasks = resources.database.connection(), _wanted(resources.tasks, params.task)
    oldest = invocation.clock - max((task.retention for task in tasks), default=_SHORTEST_LOOK)
    before = min(params.before or invocation.clock, invocation.clock)
    if before <= oldest:
        return {"gap": None, "searched_since": before.isoformat()}
    until, look = before - _INSTANT, _SHORTEST_LOOK
    while until >= oldest and invocation.seconds_left > 1:
        since = max(until - look, oldest)
        gaps = list(_gaps(_rows(db, tasks, since, until, invocation.clock)))
        if gaps:
            return {"gap": max(gaps, key=itemgetter("slot")), "searched_since": since.isoformat()}
        until, look = since - _INSTANT, min(2 * look, _LONGEST_LOOK)
    return {"gap": None, "searched_since": (until + _INSTANT).isoformat()}


def _gaps(tasks: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for task in tasks:
        for slot in task["slots"]:
            if slot["status"] in ("missed", "failed"):
                yield {"task": task["task"], "slot": slot["slot"], "status": slot["status"]}


def _wanted(registry: TaskRegistry, name: str | None) -> list[Task]:
    return [registry.find(name)] if name else [task for task in registry if task.schedule]


def _rows(
    db: Connection, tasks: Sequence[Task], since: datetime, until: datetime, clock: datetime
) -> list[dict[str, Any]]:
    """Return the slots of each task: those with runs, and those that were due without."""
    values = {
        "tasks": [task.name for task in tasks],
        "schedules": [task.schedule for task in tasks],
        "since": since,
        "until": until,
    }
    slots: dict[str, Slots] = {task.name: {} for task in tasks}
    for name, slot, *state in db.execute(SQL["fold_slots"], values):
        slots[name][slot.astimezone(UTC)] = tuple(state)
    first_due: dict[str, datetime | None] = dict(db.execute(SQL["find_first_due"], values).fetchall())
    for task in tasks:
        # Earlier runs may have been pruned.
        first = max(since, clock - task.retention, first_due[task.name] or clock)
        _add_unrecorded(slots[task.name], _expected(task, first, until), clock - lookback_of(task))
    return [
        {
            "task": task.name,
            "schedule": task.schedule,
            "slots": [
                {"slot": slot.isoformat(), "status": status, "items": int(items), "runs": runs}
                for slot, (status, items, runs) in sorted(slots[task.name].items())
            ],
        }
        for task in tasks
    ]


def _add_unrecorded(slots: Slots, expected: Sequence[datetime], looked_at_since: datetime) -> None:
    """Add the slots without a run. None comes for one that is too old to be looked at."""
    for slot in expected:
        if slot not in slots:
            slots[slot] = ("due" if slot > looked_at_since else "missed", 0, 0)


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
