"""Show every task against its slots as a grid, and plan a backfill of a cell or a range of it.

All tasks share one axis; a single task has a row for each day. A cell of several slots shows the worst of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from signalbox.errors import PayloadRefused, Refused
from signalbox.operations.ledger import MOST_SLOTS
from signalbox.packs.schedule import Schedule
from signalbox.pages.commands import command_of
from signalbox.pages.visit import Shown, Visit, moment

# From best to worst.
STATUSES = {"succeeded": "ran", "skipped": "skipped", "due": "due", "partial": "in part", "running": "running",
            "missed": "missed", "failed": "failed"}  # fmt: skip
_WORST = {status: place for place, status in enumerate(STATUSES)}
SPANS = {"6h": "6 h", "24h": "24 h", "3d": "3 d"}
_SPANS_OF_ONE = {"24h": 1, "3d": 3, "7d": 7, "14d": 14, "35d": 35, "90d": 90}  # in days
_MOST_CELLS = 96
_STEPS = tuple(timedelta(minutes=minutes) for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 240, 360, 720, 1440))
_DAY = timedelta(days=1)
_LONGEST = timedelta(days=400)  # from now: a row for each day of centuries could not be drawn
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Cell(NamedTuple):
    """Describe one cell: what pressing it asks for, the worst status of its slots, and what they are."""

    value: str  # TASK AT
    status: str
    title: str


class Row(NamedTuple):
    """Describe one row: its cells, with None where it has no slot."""

    task: str
    label: str
    cells: Sequence[Cell | None]


class Axis(NamedTuple):
    """Describe the time of a row: so many cells of one length from an instant on."""

    start: datetime
    size: int
    step: timedelta


def show(visit: Visit) -> Shown:
    asked, jumped = _place(visit)
    span = visit.query.get("span", "24h" if "since" not in visit.query else "")
    if span and "since" not in asked:  # to the minute, so that an unchanged grid is the same until the next one
        asked = {"until": _minute(visit).isoformat(), **asked, "since": moment(span, _minute(visit))}
    found = visit.operate("show_slots", **asked)
    since, until = (datetime.fromisoformat(found[end]).astimezone(UTC) for end in ("since", "until"))
    if since < visit.clock - _LONGEST or until > visit.clock + _LONGEST:
        raise PayloadRefused("the timetable shows at most the last 400 days: choose a later time")
    task = asked.get("task")
    step = _step(_DAY if task else until - since)
    rows = list(_days(found["tasks"][0], since, until, step) if task else _tasks(found["tasks"], since, until, step))
    chosen = _chosen(visit, step)
    values = {
        "rows": rows,
        "marks": _marks(len(rows[0].cells) if rows else 0, since, step, by_day=bool(task)),
        "step": step,
        "step_seconds": int(step.total_seconds()),
        "since": found["since"],
        "until": found["until"],
        "span": span,
        "spans": _spans(found["tasks"][0]["schedule"], until) if task else SPANS,
        "statuses": STATUSES,
        "task": task,
        "tasks": [one for one in visit.operate("list_tasks")["tasks"] if one["schedule"]],
        "counts": Counter(slot["status"] for one in found["tasks"] for slot in one["slots"]),
        "chosen": chosen,
        "jumped": jumped,
        "earlier": (since - (until - since)).isoformat(),
        "later": min(until + (until - since), _minute(visit)).isoformat(),
    }
    shown = {name: value for name, value in asked.items() if span == "" or name == "task"}
    commands = [command_of("show_slots", shown | ({"since": asked["since"]} if span else {}))]
    if chosen and "plan" in chosen:
        commands.append(command_of("create_backfill", chosen["params"]))
    return Shown("timetable.html", "Timetable", values, commands)


def _place(visit: Visit) -> tuple[dict[str, Any], str]:
    """Return what the grid shows; `gap_before` asks for the newest gap before an instant, however far back."""
    asked = visit.params("show_slots", visit.query)
    if "gap_before" not in visit.query:
        return asked, ""
    wanted = {"before": visit.query["gap_before"], **({"task": asked["task"]} if "task" in asked else {})}
    gap = visit.operate("find_gap", **visit.params("find_gap", wanted))["gap"]
    if gap is None:
        return asked, "No gap is on record before that."
    at = datetime.fromisoformat(gap["slot"])
    until = min(at + _DAY / 2, visit.clock)
    place = {"since": (until - _DAY).isoformat(), "until": until.isoformat()}
    return asked | place, f"{gap['task']} {STATUSES[gap['status']]} at {at:%Y-%m-%d %H:%M} UTC."


def _spans(schedule: str, until: datetime) -> dict[str, str]:
    """Return the lengths that may be chosen for one task: those of not too many slots."""
    a_day = sum(1 for _ in Schedule.parse(schedule).between(until - _DAY, until)) if schedule else 0
    return {span: f"{days} d" for span, days in _SPANS_OF_ONE.items() if days * a_day <= MOST_SLOTS}


def _minute(visit: Visit) -> datetime:
    return visit.clock.replace(second=0, microsecond=0)


def _step(span: timedelta) -> timedelta:
    return next((step for step in _STEPS if span <= _MOST_CELLS * step), -(-span // _MOST_CELLS // _DAY) * _DAY)


def _tasks(tasks: Sequence[Mapping[str, Any]], since: datetime, until: datetime, step: timedelta) -> Iterator[Row]:
    start = since - (since - _EPOCH) % step
    axis = Axis(start, (until - start) // step + 1, step)
    for one in tasks:
        yield _row(one["task"], one["task"], one["slots"], axis)


def _days(task: Mapping[str, Any], since: datetime, until: datetime, step: timedelta) -> Iterator[Row]:
    """Return a row for each day, the newest first."""
    by_day: dict[str, list[Mapping[str, Any]]] = {}
    for slot in task["slots"]:
        by_day.setdefault(slot["slot"][:10], []).append(slot)
    day = until.replace(hour=0, minute=0, second=0, microsecond=0)
    while day + _DAY > since:
        name = f"{day:%Y-%m-%d}"
        yield _row(task["task"], name, by_day.get(name, ()), Axis(day, _DAY // step, step))
        day -= _DAY


def _row(task: str, label: str, slots: Sequence[Mapping[str, Any]], axis: Axis) -> Row:
    held: list[list[str]] = [[] for _ in range(axis.size)]
    begins, length = axis.start.timestamp(), axis.step.total_seconds()
    for slot in slots:
        held[int((datetime.fromisoformat(slot["slot"]).timestamp() - begins) // length)].append(slot["status"])
    cells = [
        _cell(task, axis.start + place * axis.step, inside) if inside else None for place, inside in enumerate(held)
    ]
    return Row(task, label, cells)


def _cell(task: str, at: datetime, statuses: Sequence[str]) -> Cell:
    time = at.isoformat(timespec="minutes")[:16]
    worst = max(statuses, key=_WORST.__getitem__)
    return Cell(f"{task} {time}", worst, f"{task} {time.replace('T', ' ')} {_text(statuses)}")


def _text(statuses: Sequence[str]) -> str:
    if len(statuses) == 1:
        return STATUSES[statuses[0]]
    counts = Counter(statuses)
    return ", ".join(f"{counts[status]} {word}" for status, word in STATUSES.items() if counts[status])


def _marks(cells: int, since: datetime, step: timedelta, *, by_day: bool) -> list[tuple[int, str]]:
    """Return the labels of the axis: the cell where each begins, and its text."""
    start = since.replace(hour=0, minute=0, second=0, microsecond=0) if by_day else since - (since - _EPOCH) % step
    every = next((one for one in _STEPS if one >= step * 8), step * 8)
    found = []
    for place in range(cells):
        at = start + place * step
        if (at - _EPOCH) % every == timedelta(0):
            found.append((place, f"{at:%d %b}" if at.hour == at.minute == 0 and not by_day else f"{at:%H:%M}"))
    return found


def _chosen(visit: Visit, step: timedelta) -> dict[str, Any] | None:
    """Return the plan of a backfill of what was pressed: a cell (`TASK AT`), or a range from `from` to `to`."""
    query = dict(visit.query)
    if cell := query.get("cell"):
        task, _, at = cell.partition(" ")
        try:
            first = datetime.fromisoformat(at).replace(tzinfo=UTC)
            last = first + step - timedelta(seconds=1)
        except (ValueError, OverflowError):
            return None
        query |= {"task": task, "from": first.isoformat(), "to": last.isoformat()}
    if not {"task", "from", "to"} <= query.keys():
        return None
    query["to"] = min(
        visit.params("create_backfill", {"to": query["to"]})["to"], visit.clock.astimezone(UTC).isoformat()
    )
    query = {name: text for name, text in query.items() if name not in ("dry_run", "requested_by")}
    params = visit.params("create_backfill", query)
    shown: dict[str, Any] = {"params": params}
    if not visit.is_operator:
        return shown
    try:
        plan = visit.operate("create_backfill", dry_run=True, **params)["dry_run"]
        states = Counter(slot["status"] for slot in plan["plan"])
        return shown | {"plan": plan, "states": states}
    except Refused as error:
        return shown | {"refused": str(error)}
