"""Show one job: its state and why it waits, a time axis on which each gap has its reason, and the jobs around it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from signalbox.pages.charts import WIDTH, nice_span
from signalbox.pages.commands import command_of
from signalbox.pages.visit import Shown, Visit

# Why there is a gap after an attempt that ended in this way.
_GAPS = {
    "failed": "waits to be retried",
    "timeout": "waits to be retried",
    "snoozed": "snoozes",
    "throttled": "waits until the service allows it",
    "continued": "goes on with its next piece",
    "released": "was given back to its lane",
    "lost": "its worker died",
}
_ROW, _NODES = 30, 8


class Span(NamedTuple):
    """Describe one stretch of the axis."""

    kind: str  # wait, lane, or the status of an attempt
    label: str
    since: datetime
    until: datetime


class Node(NamedTuple):
    """Describe one job of the graph: its place, and the edge to the job in the middle."""

    id: str
    job_type: str
    status: str
    x: int
    y: int
    label: str


def show(visit: Visit) -> Shown:
    id_ = visit.in_path["id"]
    found = visit.operate("show_job", id=id_)
    job = found["job"]
    spans = list(_spans(found, visit.clock))
    begins, is_final = datetime.fromisoformat(job["created_at"]), bool(job["completed_at"])
    length = ((spans[-1].until if spans else visit.clock) - begins).total_seconds()
    whole = max(length if is_final else nice_span(length), 0.001)
    drawn = [_drawn(span, begins, whole) for span in spans]
    if drawn and not is_final:  # what goes on is drawn to the edge, and so is the same until the axis grows
        drawn[-1] |= {"ms": None, "width": WIDTH - drawn[-1]["x"]}
    described = {one["key"]: one for one in found["files"]}
    values = {
        "found": found,
        "job": job,
        "texts": {name: _text(job[name]) for name in ("payload", "result", "error_details", "cursor") if job.get(name)},
        "files": [(name, described.get(name)) for name in job["output_files"] or ()],
        "axis": drawn,
        "axis_ms": whole * 1000,
        "graph": _graph(found),
        "is_final": is_final,
    }
    return Shown("job.html", f"{job['job_type']} {job['id'][:8]}", values, [command_of("show_job", {"id": job["id"]})])


def _spans(found: Mapping[str, Any], clock: datetime) -> Iterator[Span]:
    """Return the job's time from its submit to its end, or to now, without a gap."""
    job = found["job"]
    at, reason = datetime.fromisoformat(job["created_at"]), _first_wait(found)
    for attempt in reversed(found["executions"]):
        started = datetime.fromisoformat(attempt["started_at"])
        queued = datetime.fromisoformat(attempt["queued_at"]) if attempt["queued_at"] else started
        queued = min(max(queued, at), started)
        if queued > at:
            yield Span("wait", reason, at, queued)
        if started > queued:
            yield Span("lane", f"queued in the lane {attempt['lane']}", queued, started)
        ended = datetime.fromisoformat(attempt["completed_at"]) if attempt["completed_at"] else max(clock, started)
        yield Span(attempt["status"], f"attempt {attempt['attempt_number']} {attempt['status']}", started, ended)
        at, reason = max(ended, at), _GAPS.get(attempt["status"], "waits")
    if job["completed_at"]:
        end = datetime.fromisoformat(job["completed_at"])
        if end > at + timedelta(milliseconds=1) and not found["executions"]:
            yield Span("wait", reason, at, end)
    elif job["status"] != "running":
        why = found["waits"]["text"] if found["waits"] else reason
        yield Span("wait", why, at, max(clock, at))


def _first_wait(found: Mapping[str, Any]) -> str:
    job = found["job"]
    if found["depends_on"]:
        return "waits for the jobs it depends on"
    if job["scheduled_for"] and job["scheduled_for"] > job["created_at"]:
        return "waits for its time"
    return "waits to be sent to its lane"


def _drawn(span: Span, begins: datetime, whole: float) -> dict[str, Any]:
    taken = (span.until - span.since).total_seconds()
    return {
        "kind": span.kind,
        "label": span.label,
        "ms": taken * 1000,
        "since": span.since.isoformat(),
        "x": round((span.since - begins).total_seconds() / whole * WIDTH, 2),
        "width": round(max(taken / whole * WIDTH, 1.5), 2),
    }


def _graph(found: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the jobs around this one in three columns: what it waits for, itself, and what follows."""
    before = [(one, one["dependency_type"]) for one in found["depends_on"]]
    after = [(one, one["dependency_type"]) for one in found["dependents"]]
    after += [(one, "submitted") for one in found["children"]]
    if not before and not after:
        return None
    rows = min(max(len(before), len(after), 1), _NODES)
    return {
        "height": rows * _ROW,
        "middle": rows * _ROW // 2,
        "before": _column(before, 0),
        "after": _column(after, 420),
        "left_out": max(0, len(before) - _NODES) + max(0, len(after) - _NODES),
    }


def _column(jobs: Sequence[tuple[Mapping[str, Any], str]], x: int) -> list[Node]:
    return [
        Node(one["id"], one["job_type"], one["status"], x, place * _ROW + 4, label)
        for place, (one, label) in enumerate(jobs[:_NODES])
    ]


def _text(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
