"""The grid of slots folds and draws its rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.packs.schedule import Schedule
from signalbox_cli.views.palette import LOOKS
from signalbox_cli.views.slot_grid import Grid, choose_step, floor, fold, grid_lines, worst

NOON = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def answer(since: datetime, until: datetime, **tasks: dict[datetime, str]) -> dict[str, Any]:
    """Answer as show_slots does."""
    return {
        "since": since.isoformat(),
        "until": until.isoformat(),
        "tasks": [
            {
                "task": task,
                "schedule": "cron(* * * * ? *)",
                "slots": [
                    {"slot": slot.isoformat(), "status": status, "items": 0, "runs": 1}
                    for slot, status in slots.items()
                ],
            }
            for task, slots in tasks.items()
        ],
    }


def hourly(status: str = "succeeded", *, hours: int = 24) -> dict[datetime, str]:
    return {NOON - hour * HOUR: status for hour in reversed(range(hours))}


def drawn(grid: Grid, *, unicode: bool = True) -> list[str]:
    return [line.plain for line in grid_lines(grid, unicode=unicode)]


def test_an_hourly_task_has_a_cell_a_slot_where_the_day_fits() -> None:
    slots = hourly() | {NOON - 3 * HOUR: "failed"}
    grid = fold(answer(NOON - 24 * HOUR, NOON, digest=slots), 60)
    assert grid.step == HOUR
    assert [cell for cell in grid.rows[0].cells if cell] == list(slots.values())


def test_slots_that_share_a_column_show_the_worst_of_them() -> None:
    minutes = {NOON - timedelta(minutes=minute): "succeeded" for minute in range(1440)}
    minutes[NOON - timedelta(minutes=90)] = "missed"
    (row,) = fold(answer(NOON - 24 * HOUR, NOON, pulse=minutes), 60).rows
    assert [cell for cell in row.cells if cell].count("missed") == 1
    assert row.counts == {"succeeded": 1439, "missed": 1}


@pytest.mark.parametrize(
    ("statuses", "shown"),
    [
        (["succeeded", "skipped"], "skipped"),
        (["succeeded", "due"], "due"),
        (["running", "due"], "running"),
        (["running", "missed"], "missed"),
        (["missed", "failed", "succeeded"], "failed"),
        (["succeeded", "exploded", "failed"], "exploded"),
    ],
)
def test_worst_is_what_asks_for_a_look_first(statuses: list[str], shown: str) -> None:
    assert worst(statuses) == shown


def test_all_tasks_share_one_axis_so_that_an_outage_is_a_stripe() -> None:
    out = {NOON - 2 * HOUR: "missed"}
    quarter = {NOON - quarter * HOUR / 4: "succeeded" for quarter in range(24)}
    lines = drawn(fold(answer(NOON - 6 * HOUR, NOON, a=hourly(hours=6) | out, b=quarter | out), 80))
    rows = [line for line in lines if line[:1] in ("a", "b")]
    assert [row.index("○") for row in rows] == [rows[0].index("○")] * 2


FEW = hourly(hours=4) | {NOON - 2 * HOUR: "failed", NOON - HOUR: "due"}


def test_the_drawing_says_its_range_its_counts_and_what_the_symbols_mean() -> None:
    assert drawn(fold(answer(NOON - 3 * HOUR, NOON, digest=FEW), 70)) == [
        "2026-11-18T09:00Z to 2026-11-18T12:00Z, a column is 5 min",
        "        ╷09:00      ╷10:00      ╷11:00      ╷  ran  due  failed",
        "digest  ■           ✗           ·           ■    2    1       1",
        "        ■ ran  · due  ✗ failed",
    ]


def test_where_there_is_little_room_the_counts_are_headed_by_symbols() -> None:
    assert drawn(fold(answer(NOON - 3 * HOUR, NOON, digest=FEW), 40))[1:3] == [
        "              ╷10:00      ╷  ■  ·  ✗",
        "digest  ■     ✗     ·     ■  2  1  1",
    ]


def test_the_axis_names_the_day_at_midnight() -> None:
    midnight = NOON.replace(hour=0)
    (_, axis, *_) = drawn(fold(answer(midnight - 12 * HOUR, midnight + 12 * HOUR, digest=hourly()), 60))
    assert "╷18 Nov" in axis
    assert "╷12:00" in axis


def test_without_unicode_marks_are_ascii_and_still_distinct() -> None:
    slots = {NOON - at * HOUR: status for at, status in enumerate(LOOKS)}
    lines = drawn(fold(answer(NOON - 12 * HOUR, NOON, digest=slots), 80), unicode=False)
    assert all(line.isascii() for line in lines)
    assert len({look.ascii for look in LOOKS.values()}) == len({look.symbol for look in LOOKS.values()}) == len(LOOKS)


def test_no_task_at_all_is_said() -> None:
    assert drawn(fold(answer(NOON - HOUR, NOON), 80))[1] == "no task has a schedule"


def test_a_task_without_slots_has_an_empty_row() -> None:
    lines = drawn(fold(answer(NOON - HOUR, NOON, rare={}, pulse={NOON: "succeeded"}), 80))
    assert "rare" in lines


@given(
    span=st.timedeltas(min_value=timedelta(minutes=1), max_value=timedelta(days=400)),
    width=st.integers(min_value=60, max_value=250),
    offset=st.integers(min_value=0, max_value=10_000),
)
def test_the_drawing_fits_the_terminal_and_loses_no_slot(span: timedelta, width: int, offset: int) -> None:
    until = NOON + timedelta(seconds=offset)
    since = until - span
    quarters = Schedule.parse("cron(0/15 * * * ? *)").between(max(since, until - timedelta(days=3)), until)
    slots = dict.fromkeys(quarters, "succeeded")
    grid = fold(answer(since, until, poll_data=slots), width)
    assert all(len(line) <= width for line in drawn(grid))
    assert grid.columns == len(grid.rows[0].cells)
    assert bool(slots) == ("succeeded" in grid.rows[0].cells)


@given(
    st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=900)),
    st.integers(min_value=20, max_value=200),
)
def test_the_step_is_the_shortest_with_which_the_range_fits(span: timedelta, columns: int) -> None:
    since = NOON - span
    step = choose_step(since, NOON, columns)
    assert (NOON - floor(since, step)) // step < columns
    assert floor(since, step) <= since
