"""Show what came of fired rules: the runs that followed, and everything that should not have happened. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from signalbox_cli.views.log_line import LogRecord
from signalbox_cli.views.numbers import counted
from signalbox_cli.views.run_table import Run, items_of, note_of, took_of
from signalbox_cli.views.table import Column, Row
from signalbox_cli.views.times import show_instant

_TRIGGERS = ("schedule", "manual", "catch_up", "backfill", "continuation")
COLUMNS = (
    Column("task"),
    Column("slot"),
    Column("trigger"),
    Column("status"),
    Column("items", right=True),
    Column("took", right=True, spare=1),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """Describe the ledger before anything was fired."""

    last_id: int
    lost: Collection[int] = ()  # runs that the sample data left running without a worker


@dataclass(frozen=True, slots=True, kw_only=True)
class TickResult:
    """Collect what followed from the fired rules."""

    fired: Sequence[Mapping[str, Any]]
    runs: Sequence[Run]
    before: Before
    idle: bool
    errors: Sequence[LogRecord]  # reports of invocations that went wrong
    failed_invocations: int = 0  # given up and filed

    def missed(self) -> int:
        return sum(run["status"] == "missed" for run in self.runs)

    def counted(self) -> str:
        """Sum the outcome up in a sentence."""
        ran = counted(len(self.runs) - self.missed(), "run")
        verdict = "see below for what failed" if self.failures() else "nothing failed"
        return f"{ran}, {counted(self.missed(), 'missed slot')} found, {verdict}"

    def failures(self) -> list[str]:
        """Return what should not have happened, a line each."""
        return [*self._failed_fires(), *self._failed_runs(), *self._failed_invocations()]

    def _failed_fires(self) -> Iterator[str]:
        if not self.fired:
            yield "no rule fired: the template has none that is enabled"
        for rule in self.fired:
            if rule["failed"]:
                yield f"rule {rule['rule']} did not reach {rule['failed']} of its {rule['targets']} targets"

    def _failed_runs(self) -> Iterator[str]:
        for run in self.runs:
            what = f"{run['job_type']} for {show_instant(run['slot'])}"
            if run["status"] == "running":
                yield f"{what} is still at work: nothing has ended it"
            elif run["status"] == "failed" and run["id"] not in self.before.lost:
                yield f"{what} failed: {note_of(run)}"

    def _failed_invocations(self) -> Iterator[str]:
        if not self.idle:
            yield "the stack was still at work when time was up"
        for (function, kind), count in Counter(map(_kind, self.errors)).items():
            yield f"function {function} failed with {kind}: {counted(count, 'invocation')}"
        if self.failed_invocations:
            yield f"{counted(self.failed_invocations, 'event')} ended among the dead letters"


def caused(runs: Sequence[Run], before: Before, at: datetime) -> list[Run]:
    """Return the runs that rules fired for that instant added or changed: first the fired ones, then what followed."""
    found = [run for run in runs if run["id"] in before.lost or (run["id"] > before.last_id and _follows(run, at))]
    return sorted(found, key=lambda run: (run["id"] > before.last_id, _TRIGGERS.index(run["trigger"]), _place(run)))


def _follows(run: Run, at: datetime) -> bool:
    """Exclude runs that a person or the clock started meanwhile."""
    if run["trigger"] == "schedule":
        return datetime.fromisoformat(run["reference_time"]) == at
    return bool(run["trigger"] != "manual")


def _place(run: Run) -> tuple[str, str, int]:
    """Return a key that sorts runs alike every time, whichever was faster."""
    return run["job_type"], run["slot"], run["id"]


def rows(outcome: TickResult) -> list[Row]:
    """Return a row per run; the slots that a task missed share one row."""
    missed: dict[str, list[str]] = {}
    for run in outcome.runs:
        if run["status"] == "missed":
            missed.setdefault(run["job_type"], []).append(run["slot"])
    ran = [_row(run, outcome.before) for run in outcome.runs if run["status"] != "missed"]
    return ran + [_missed_row(task, sorted(slots)) for task, slots in missed.items()]


def _row(run: Run, before: Before) -> Row:
    """Return the run's row. The sweep ends the sample data's lost runs as failed: that is its work, and no failure."""
    sample = run["id"] in before.lost
    cells = [
        run["job_type"],
        show_instant(run["slot"]),
        run["trigger"],
        "lost" if sample and run["status"] == "failed" else run["status"],
        items_of(run),
        "" if sample else took_of(run),
    ]
    return Row(cells, "sample: its worker vanished" if sample else note_of(run))


def _missed_row(task: str, slots: list[str]) -> Row:
    first, last = show_instant(slots[0]), show_instant(slots[-1]).rpartition("T")[2]
    many = f"{len(slots)} slots, to {last}" if len(slots) > 1 else ""
    return Row([task, first, "schedule", "missed", "", ""], many)


def _kind(report: LogRecord) -> tuple[str, str]:
    record = report.fields["record"]
    return report.function, str(record.get("errorType") or record.get("status"))
