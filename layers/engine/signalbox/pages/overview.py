"""Show the whole stack: its health, its lanes, what runs, what needs a person, and charts over a chosen time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from signalbox.pages.charts import bars, line
from signalbox.pages.commands import command_of
from signalbox.pages.visit import Shown, Visit

WINDOWS = {1: "1 h", 3: "3 h", 24: "24 h", 168: "7 d", 720: "30 d"}
_LENGTHS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}
_MOST = 10


def show(visit: Visit) -> Shown:
    hours = visit.params("show_statistics", visit.query).get("hours", 24)
    figures = visit.operate("show_statistics", hours=hours, health=True)
    windows = list(_windows(figures))
    longest = max((one["p99_ms"] or 0 for one in windows), default=0)
    running = visit.operate("list_jobs", status="running", limit=_MOST + 1)["jobs"]
    values = {
        "hours": hours,
        "windows": WINDOWS,
        "figures": figures,
        "health": figures["health"],
        "running": running[:_MOST],
        "more_running": len(running) > _MOST,
        "attention": list(_attention(visit)),
        "begins": windows[0]["starts_at"] if windows else None,
        "ended": bars([(one["completed"], one["failed"] + one["timed_out"]) for one in windows]),
        "durations": {name: line([one[f"{name}_ms"] for one in windows], longest) for name in ("p50", "p95", "p99")}
        if longest else {},
        "longest_ms": longest,
    }  # fmt: skip
    commands = [command_of("show_statistics", {"hours": hours}), command_of("show_health", {})]
    return Shown("overview.html", "Overview", values, commands)


def _windows(figures: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Return the figures of each period of the time shown, also of those in which nothing ended."""
    known = {one["starts_at"]: one for one in figures["by_window"]}
    length = _LENGTHS[figures["period"]]
    at, until = datetime.fromisoformat(figures["since"]), datetime.fromisoformat(figures["until"])
    empty = {"completed": 0, "failed": 0, "timed_out": 0, "p50_ms": None, "p95_ms": None, "p99_ms": None}
    while at < until:
        yield known.get(at.isoformat()) or {"starts_at": at.isoformat(), **empty}
        at += length


def _attention(visit: Visit) -> Iterator[tuple[str, str, str]]:
    """Return what waits for a person's decision: a text, more about it, and where to decide."""
    for kind in visit.operate("list_dead_letters", by_kind=True, status=["pending"], limit=5)["kinds"]:
        text = f"{kind['pending']:,} × {kind['job_type']}: {kind['error_type'] or kind['failure_reason']}"
        yield text, kind["error_message"] or "", f"/dead-letters/kinds/{kind['fingerprint']}"
    for control in visit.operate("list_controls")["controls"]:
        if control["paused"]:
            by = f"by {control['changed_by'] or 'somebody'}"
            yield f"{control['kind']} {control['key']} is paused", f"{by}: {control['reason'] or 'no reason'}", "/caps"
    for backfill in visit.operate("list_backfills", status="paused", limit=5)["backfills"]:
        yield f"the backfill of {backfill['task']} is paused", backfill["reason"] or "", f"/backfills/{backfill['id']}"
