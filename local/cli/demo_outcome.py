"""What came of the demo: the runs that it caused, and everything that should not have happened. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local.cli.instant import show_instant
from local.cli.log_line import LogRecord
from local.cli.runs import Run, items_of, note_of, took_of
from local.cli.table import Column, Row

_TRIGGERS = ("schedule", "manual", "catch_up", "backfill", "continuation")
COLUMNS = (
    Column("task"),
    Column("slot"),
    Column("trigger"),
    Column("status"),
    Column("items", right=True),
    Column("took", right=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """What the sample data had put into the ledger before anything was fired."""

    last_id: int
    running: Collection[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Everything that the demo saw."""

    fired: Sequence[Mapping[str, Any]]
    runs: Sequence[Run]
    planted: Planted
    idle: bool
    failed_invocations: int
    errors: Sequence[LogRecord]  # reports of invocations that went wrong

    def missed(self) -> int:
        return sum(run["status"] == "missed" for run in self.runs)

    def failures(self) -> list[str]:
        """What makes the demo fail, a line each."""
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
            elif run["status"] == "failed" and run["id"] not in self.planted.running:
                yield f"{what} failed: {note_of(run)}"

    def _failed_invocations(self) -> Iterator[str]:
        if not self.idle:
            yield "the stack was still at work when time was up"
        for (function, kind), count in Counter(map(_kind, self.errors)).items():
            yield f"function {function} failed with {kind}: {_counted(count, 'invocation')}"
        if self.failed_invocations:
            yield f"the queue of failed invocations holds {_counted(self.failed_invocations, 'event')}"


def caused(runs: Sequence[Run], planted: Planted) -> list[Run]:
    """Of all that is in the ledger, what was not there before, or has changed: first what the rules fired, then what
    followed from it."""
    found = [run for run in runs if run["id"] > planted.last_id or run["id"] in planted.running]
    return sorted(found, key=lambda run: (run["id"] > planted.last_id, _TRIGGERS.index(run["trigger"]), _place(run)))


def _place(run: Run) -> tuple[str, str, int]:
    """Alike from one demo to the next, whoever was faster."""
    return run["job_type"], run["slot"], run["id"]


def rows(outcome: Outcome) -> list[Row]:
    """A row a run; the slots that a task missed are one row together."""
    missed: dict[str, list[str]] = {}
    for run in outcome.runs:
        if run["status"] == "missed":
            missed.setdefault(run["job_type"], []).append(run["slot"])
    ran = [_row(run, outcome.planted) for run in outcome.runs if run["status"] != "missed"]
    return ran + [_missed_row(task, sorted(slots)) for task, slots in missed.items()]


def _row(run: Run, planted: Planted) -> Row:
    sample = run["id"] in planted.running
    cells = [
        run["job_type"],
        show_instant(run["slot"]),
        run["trigger"],
        run["status"],
        items_of(run),
        "" if sample else took_of(run),
    ]
    return Row(cells, "sample: worker vanished" if sample else note_of(run))


def _missed_row(task: str, slots: list[str]) -> Row:
    first, last = show_instant(slots[0]), show_instant(slots[-1]).rpartition("T")[2]
    many = f"{len(slots)} slots, to {last}" if len(slots) > 1 else ""
    return Row([task, first, "schedule", "missed", "", ""], many)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _kind(report: LogRecord) -> tuple[str, str]:
    record = report.fields["record"]
    return report.function, str(record.get("errorType") or record.get("status"))
