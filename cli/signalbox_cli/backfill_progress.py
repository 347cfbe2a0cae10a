"""Watch a backfill to its end: a bar in a terminal, a line now and then elsewhere.

The stack's clock drives backfills once a minute. Where nothing moves, for example because the rules are off, the
watching command invokes the driver's task itself. The ledger shows that as a manual run, and the backfill's rate holds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from signalbox_cli.target.target import Target
from signalbox_cli.terminal import console, say

Backfill = dict[str, Any]
LOOK_AGAIN_SECONDS = 1.0
# The driver counts what it started in the last 55 seconds against the rate.
_RATE_WINDOW_SECONDS = 56.0
# A failed slot may still have a retry coming, and the driver's clock comes within a minute.
_RETRY_PATIENCE_SECONDS = 5.0
_NUDGE = {"task": "advance_backfills", "force": True}

Show = Callable[[Backfill], None]


@dataclass(slots=True)
class Quiet:
    """Track how long nothing has moved."""

    counts: dict[str, int]
    since: float

    def note(self, backfill: Backfill, now: float) -> float:
        """Return the seconds since the last change."""
        if backfill["slots"] != self.counts:
            self.counts, self.since = backfill["slots"], now
        return now - self.since


def watch(target: Target, backfill: Backfill) -> Backfill:
    """Look once a second until the backfill is completed, cancelled or paused; return its last state."""
    quiet = Quiet(backfill["slots"], time.monotonic())
    with _display(backfill) as show:
        while backfill["status"] == "running":
            if wants_nudge(backfill["slots"], quiet.note(backfill, time.monotonic())):
                target.invoke("archiver", _NUDGE).value()
                quiet.since = time.monotonic()
            else:
                time.sleep(LOOK_AGAIN_SECONDS)
            backfill = target.operate("show_backfill", id=backfill["id"])["backfill"]
            show(backfill)
    return backfill


def wants_nudge(slots: dict[str, int], quiet_seconds: float) -> bool:
    """Say whether the driver would find work that its clock has left undone."""
    if slots["dispatched"]:
        return False
    if slots["pending"]:
        return quiet_seconds >= _RATE_WINDOW_SECONDS
    return quiet_seconds >= (_RETRY_PATIENCE_SECONDS if slots["failed"] else 0)


def ended(slots: dict[str, int]) -> int:
    """Count the slots that have ended."""
    return slots["total"] - slots["pending"] - slots["dispatched"]


@contextmanager
def _display(backfill: Backfill) -> Iterator[Show]:
    out = console(stderr=True)
    if not out.is_terminal:
        yield _Lines(backfill).show
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = [TextColumn("{task.description}"), BarColumn(None), MofNCompleteColumn(), TimeRemainingColumn()]
    with Progress(*columns, TextColumn("{task.fields[note]}", style="dim"), console=out, expand=True) as progress:
        bar = progress.add_task(backfill["task"], total=backfill["slots"]["total"], note="")

        def show(now: Backfill) -> None:
            progress.update(bar, completed=ended(now["slots"]), note=note(now["slots"]))

        show(backfill)
        yield show


def note(slots: dict[str, int]) -> str:
    """Return the counts that the bar does not show."""
    shown = [("dispatched", "at work"), ("failed", "failed")]
    return ", ".join(f"{slots[name]:,} {word}" for name, word in shown if slots[name])


class _Lines:
    """Print a line for each tenth of the way, for logs and pipes."""

    def __init__(self, backfill: Backfill) -> None:
        self._tenths = -1
        self.show(backfill)

    def show(self, backfill: Backfill) -> None:
        slots = backfill["slots"]
        tenths = ended(slots) * 10 // max(slots["total"], 1)
        if tenths > self._tenths:
            self._tenths = tenths
            beside = note(slots)
            say(f"{ended(slots):,} of {slots['total']:,} slots{f', {beside}' if beside else ''}")
