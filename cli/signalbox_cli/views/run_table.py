"""Runs of the ledger: fetched page by page, and laid out as a table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rich.text import Text

from signalbox_cli.target.target import Target
from signalbox_cli.views.table import Column, Row, table
from signalbox_cli.views.times import show_age, show_duration, show_instant

Run = dict[str, Any]
MOST_A_PAGE = 1000
# From this width on there is room to say when a run began; its slot says what it was for.
_WIDE = 120
# What the status says already.
_MISSED = "no run came for this slot"


def fetch_runs(target: Target, most: int | None, **filters: Any) -> tuple[list[Run], int | None]:
    """The newest runs, as many as asked for or all, and what the rest starts before, if there is a rest."""
    runs: list[Run] = []
    following: int | None = None
    while True:
        page_size = MOST_A_PAGE if most is None else min(MOST_A_PAGE, most - len(runs))
        page = target.operate("list_runs", limit=page_size, before_id=following, **filters)
        runs += page["runs"]
        following = page["next"]
        if following is None or len(runs) == most:
            return runs, following


def fetch_runs_after(target: Target, id_: int) -> list[Run]:
    """Every run that is newer than that one, newest first."""
    runs: list[Run] = []
    following: int | None = None
    while True:
        page = target.operate("list_runs", limit=MOST_A_PAGE, before_id=following)
        runs += [run for run in page["runs"] if run["id"] > id_]
        following = page["next"]
        if following is None or following <= id_:
            return runs


def run_table(runs: Sequence[Run], width: int, clock: datetime) -> list[Text]:
    """One line a run, in the order given."""
    wide = width >= _WIDE
    columns = [
        Column("run", right=True),
        Column("task"),
        Column("slot"),
        Column("trigger"),
        Column("status"),
        Column("items", right=True),
        Column("took", right=True),
    ]
    rows = [_row(run, clock if wide else None) for run in runs]
    return table([*columns, Column("began")] if wide else columns, rows, width)


def _row(run: Run, clock: datetime | None) -> Row:
    cells = [
        str(run["id"]),
        run["job_type"],
        show_instant(run["slot"]),
        run["trigger"],
        run["status"],
        items_of(run),
        took_of(run),
    ]
    return Row([*cells, show_age(run["started_at"], clock)] if clock else cells, note_of(run))


def items_of(run: Run) -> str:
    """None is said of what did not run."""
    return f"{run['items']:,}" if run["items"] or run["status"] == "succeeded" else ""


def took_of(run: Run) -> str:
    """Likewise; a slot that was not taken up took no time."""
    took = run["duration_ms"]
    return show_duration(took) if took or run["status"] == "succeeded" else ""


def note_of(run: Run) -> str:
    """Why it ended as it did, where that needs saying."""
    if error := run.get("error"):
        return f"{error.get('type')}: {error.get('message')}"
    if run.get("reason") and run["reason"] != _MISSED:
        return str(run["reason"])
    return "work is left: a continuation follows" if run.get("more") else ""
