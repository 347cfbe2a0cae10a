"""The job plane's figures and health as text. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from local.cli.instant import show_duration, show_instant
from local.cli.number import counted
from local.cli.table import Column, Row, table

_Figures = Mapping[str, Any]
_COLUMNS = (
    Column("type"),
    Column("completed", right=True),
    Column("failed", right=True),
    Column("buried", right=True),
    Column("running", right=True),
    Column("waiting", right=True),
    Column("average", right=True),
    Column("p95", right=True),
    Column("p99", right=True),
    Column("waited p95", right=True),
)
_STYLES = {"healthy": "green", "degraded": "yellow", "unhealthy": "bold red"}


def health_lines(health: _Figures) -> list[Text]:
    """One line, and two for each alert: what is the matter, and what to do."""
    signs = (
        f": {counted(health['stale_jobs'], 'stale job')}, {counted(health['open_dead_letters'], 'open dead letter')}, "
        f"{health['failed_last_hour']:,} failed for good in the last hour"
    )
    lines = [Text("the job plane is ").append(health["status"], style=_STYLES[health["status"]]).append(signs)]
    for alert in health["alerts"]:
        style = "bold red" if alert["severity"] == "critical" else "yellow"
        lines.append(Text("  ").append(alert["severity"], style=style).append(f"  {alert['name']}: {alert['message']}"))
        lines.append(Text(f"      {alert['advice']}", style="dim"))
    return lines


def stats_lines(found: _Figures, width: int) -> list[Text]:
    """What there is now, what became of the rest in the window, and a line a type."""
    counts = ", ".join(f"{number:,} {status}" for status, number in found["by_status"].items() if number)
    what = found["job_type"] or "jobs"
    times = [f"{name} {_ms(found[key])}" for name, key in _TIMES if found[key] is not None]
    rows = [_row(one) for one in found["by_type"]]
    return [
        Text(),
        Text(f"{what} since {show_instant(found['since'])}: {counts or 'none'}"),
        Text(f"  {found['throughput_per_minute']:g} completed a minute{_rates(found)}"),
        *([Text(f"  an attempt takes: {', '.join(times)}")] if times else []),
        *([Text(f"  {found['waiting']:,} are due and wait{_oldest(found)}")] if found["waiting"] else []),
        *([Text(), *table(_COLUMNS, rows, width)] if rows else []),
    ]


_TIMES = (("average", "average_ms"), ("p50", "p50_ms"), ("p95", "p95_ms"), ("p99", "p99_ms"), ("at most", "most_ms"))


def _rates(found: _Figures) -> str:
    shares = (("succeeded", "completion_rate"), ("failed for good", "dlq_rate"))
    return "".join(f", {found[key]:.1%} {name}" for name, key in shares if found[key] is not None)


def _oldest(found: _Figures) -> str:
    seconds = found["oldest_waiting_seconds"]
    return "" if seconds is None else f", the first of them for {show_duration(seconds * 1000)}"


def _row(one: _Figures) -> Row:
    numbers = [
        one["completed"],
        one["failed"] + one["timed_out"],
        one["buried"],
        one["running"],
        one["waiting"],
    ]
    times = [_ms(one[key]) for key in ("average_ms", "p95_ms", "p99_ms", "p95_wait_ms")]
    return Row([one["job_type"], *(f"{number:,}" for number in numbers), *times])


def _ms(value: float | None) -> str:
    return "" if value is None else show_duration(value)
