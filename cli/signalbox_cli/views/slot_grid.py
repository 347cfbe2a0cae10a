"""Draw the grid of slots: a row per task, a column per period, all rows on one axis. Folding and drawing are pure.

The period is the shortest round one with which the whole range fits the terminal. A column without a slot of the task
is blank, and one with several shows the worst.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from rich.text import Text

from signalbox_cli.views.palette import LOOKS, WORST_LAST, symbol_of
from signalbox_cli.views.times import show_instant, show_span

_STEPS = tuple(
    timedelta(minutes=minutes)
    for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 240, 360, 720, 1440, 2880, 10080, 43200, 525600)
)
_MARKS = tuple(
    timedelta(minutes=minutes)
    for minutes in (5, 10, 15, 30, 60, 120, 180, 240, 360, 720, 1440, 2880, 10080, 20160, 43200, 525600)
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_GAP = "  "
_NARROWEST = 20
# With less room for cells than this, symbols instead of words head the counts.
_NARROW = 40
_ROOM_FOR_MARK = 8


@dataclass(frozen=True, slots=True)
class TaskRow:
    """Describe one task: each cell holds a status, or None."""

    task: str
    cells: Sequence[str | None]
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Grid:
    """Describe what is drawn: the first column begins at `start`, and each is `step` long."""

    since: datetime
    until: datetime
    start: datetime
    step: timedelta
    rows: Sequence[TaskRow]
    count_widths: Mapping[str, int]  # for each status that occurs
    words: bool  # head the counts

    @property
    def columns(self) -> int:
        return _columns(self.start, self.until, self.step)

    @property
    def name_width(self) -> int:
        return max([len(row.task) for row in self.rows], default=0)


def fold(answer: Mapping[str, Any], width: int) -> Grid:
    """Fold the answer of show_slots to a terminal of that width."""
    since, until = (datetime.fromisoformat(answer[end]).astimezone(UTC) for end in ("since", "until"))
    counts = {task["task"]: Counter(slot["status"] for slot in task["slots"]) for task in answer["tasks"]}
    room = width - max(map(len, counts), default=0) - len(_GAP)
    words = room - _taken(_count_widths(counts, words=True)) >= _NARROW
    count_widths = _count_widths(counts, words=words)
    step = choose_step(since, until, max(room - _taken(count_widths), _NARROWEST))
    start = floor(since, step)
    size = _columns(start, until, step)
    rows = [
        TaskRow(task["task"], _cells(task["slots"], start, step, size), counts[task["task"]])
        for task in answer["tasks"]
    ]
    return Grid(since, until, start, step, rows, count_widths, words)


def choose_step(since: datetime, until: datetime, columns: int) -> timedelta:
    """Return the shortest round step with which the range fits that many columns."""
    fitting = (step for step in _STEPS if _columns(floor(since, step), until, step) <= columns)
    return next(fitting, _STEPS[-1])


def floor(instant: datetime, step: timedelta) -> datetime:
    return instant - (instant - _EPOCH) % step


def worst(statuses: Sequence[str]) -> str:
    """Return the worst status. One that is unknown here counts as the most suspicious."""
    return max(statuses, key=_badness)


def _badness(status: str) -> int:
    return WORST_LAST.index(status) if status in LOOKS else len(LOOKS)


def _columns(start: datetime, until: datetime, step: timedelta) -> int:
    return (until - start) // step + 1


def _cells(slots: Sequence[Mapping[str, Any]], start: datetime, step: timedelta, size: int) -> list[str | None]:
    gathered: list[list[str]] = [[] for _ in range(size)]
    for slot in slots:
        gathered[(datetime.fromisoformat(slot["slot"]) - start) // step].append(slot["status"])
    return [worst(statuses) if statuses else None for statuses in gathered]


def _count_widths(counts: Mapping[str, Mapping[str, int]], *, words: bool) -> dict[str, int]:
    """Return the width of each status that occurs, from the best to the worst."""
    largest: dict[str, int] = {}
    for counted in counts.values():
        for status, count in counted.items():
            largest[status] = max(count, largest.get(status, 0))
    return {
        status: max(len(_word(status)) if words else 1, len(f"{largest[status]:,}"))
        for status in sorted(largest, key=_badness)
    }


def _taken(widths: Mapping[str, int]) -> int:
    return sum(len(_GAP) + size for size in widths.values())


def _word(status: str) -> str:
    return LOOKS[status].word if status in LOOKS else status


def grid_lines(grid: Grid, *, unicode: bool) -> list[Text]:
    """Return the lines of the drawing: its range, the axis, the rows, and what the symbols mean."""
    head = (
        f"{show_instant(_whole(grid.since))} to {show_instant(_whole(grid.until))}, a column is {show_span(grid.step)}"
    )
    if not grid.rows:
        return [Text(head), Text("no task has a schedule")]
    axis = Text(" " * grid.name_width + _GAP + _axis(grid, unicode=unicode))
    for status, size in grid.count_widths.items():
        heading = _word(status) if grid.words else symbol_of(status, unicode=unicode)
        axis.append(_GAP + heading.rjust(size))
    axis.stylize("bold")
    return [
        Text(head, style="bright_black"),
        axis,
        *(_row_line(row, grid, unicode=unicode) for row in grid.rows),
        _legend(grid, unicode=unicode),
    ]


def _whole(instant: datetime) -> datetime:
    return instant.replace(second=0, microsecond=0)


def _row_line(row: TaskRow, grid: Grid, *, unicode: bool) -> Text:
    line = Text(row.task.ljust(grid.name_width) + _GAP)
    for status, alike in groupby(row.cells):
        _append_symbols(line, status, len(list(alike)), unicode=unicode)
    for status, size in grid.count_widths.items():
        count = row.counts.get(status, 0)
        line.append(_GAP).append((f"{count:,}" if count else "").rjust(size), style=_style(status))
    line.rstrip()
    return line


def _append_symbols(line: Text, status: str | None, count: int, *, unicode: bool) -> None:
    if status is None:
        line.append(" " * count)
    else:
        line.append(symbol_of(status, unicode=unicode) * count, style=_style(status))


def _style(status: str) -> str:
    return LOOKS[status].style if status in LOOKS else ""


def _axis(grid: Grid, *, unicode: bool) -> str:
    """Return the axis: times of day, and the date at midnight; each label begins in the column that it names."""
    every = next((mark for mark in _MARKS if mark >= grid.step * _ROOM_FOR_MARK), _MARKS[-1])
    tick = "╷" if unicode else "|"
    axis = ""
    for column in range(grid.columns):
        begins = grid.start + column * grid.step
        if floor(begins, every) == begins and len(axis) <= column:
            label = tick + (f"{begins:%d %b}" if begins.hour == begins.minute == 0 else f"{begins:%H:%M}")
            axis = axis.ljust(column) + (label if column + len(label) <= grid.columns else tick)
    return axis.ljust(grid.columns)


def _legend(grid: Grid, *, unicode: bool) -> Text:
    legend = Text(" " * grid.name_width)
    for status in grid.count_widths:
        legend.append(_GAP)
        _append_symbols(legend, status, 1, unicode=unicode)
        legend.append(f" {_word(status)}")
    return legend
