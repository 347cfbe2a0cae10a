"""Show runs of the ledger as a table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rich.text import Text

from signalbox_cli.views.table import Column, Row, table
from signalbox_cli.views.times import show_age, show_duration, show_instant

Run = dict[str, Any]
# From this width there is room to say when a run began; its slot says what it was for.
_WIDE = 120
# The status already says this.
_MISSED = "no run came for this slot"


def run_table(runs: Sequence[Run], width: int, clock: datetime) -> list[Text]:
    """Return one line per run, in the order given."""
    wide = width >= _WIDE
    columns = [
        Column("run", right=True),
        Column("task"),
        Column("slot"),
        Column("trigger"),
        Column("status"),
        Column("items", right=True, spare=1),
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
    """Return the run's items, or nothing for a run that did none and did not succeed."""
    return f"{run['items']:,}" if run["items"] or run["status"] == "succeeded" else ""


def took_of(run: Run) -> str:
    """Return how long the run took, or nothing for a slot that never ran."""
    took = run["duration_ms"]
    return show_duration(took) if took or run["status"] == "succeeded" else ""


def note_of(run: Run) -> str:
    """Return why the run ended as it did, if that needs saying."""
    if error := run.get("error"):
        return f"{error.get('type')}: {error.get('message')}"
    if run.get("reason") and run["reason"] != _MISSED:
        return str(run["reason"])
    return "work is left: a continuation follows" if run.get("more") else ""
