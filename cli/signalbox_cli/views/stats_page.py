"""Show the job plane's figures and health as text. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rich.text import Text

from signalbox_cli.views.numbers import counted
from signalbox_cli.views.table import Column, Row, table
from signalbox_cli.views.times import show_duration, show_instant

_Figures = Mapping[str, Any]
_COLUMNS = (
    Column("type"),
    Column("completed", right=True),
    Column("failed", right=True),
    Column("running", right=True),
    Column("waiting", right=True),
    Column("errors", right=True),
    Column("p95", right=True),
    Column("wait p95", right=True),
)
_TENANTS = (
    Column("tenant"),
    Column("waiting", right=True),
    Column("oldest", right=True),
    Column("running", right=True),
    Column("open dead letters", right=True),
)
_STYLES = {"healthy": "green", "degraded": "yellow", "unhealthy": "bold red"}


def health_lines(health: _Figures) -> list[Text]:
    """Return one line, and two for each alert: what is wrong, and what to do."""
    signs = (
        f": {counted(health['stale_jobs'], 'stale job')}, {counted(health['open_dead_letters'], 'open dead letter')}, "
        f"{counted(health['failed_last_hour'], 'job')} failed in the last hour"
    )
    lines = [Text("the job plane is ").append(health["status"], style=_STYLES[health["status"]]).append(signs)]
    for alert in health["alerts"]:
        style = "bold red" if alert["severity"] == "critical" else "yellow"
        lines.append(Text("  ").append(alert["severity"], style=style).append(f"  {alert['name']}: {alert['message']}"))
        lines.append(Text(f"      {alert['advice']}", style="dim"))
    return lines


def stats_lines(found: _Figures, width: int) -> list[Text]:
    """Return current jobs, those that ended in the window, and a line per type: all as of one instant."""
    counts = ", ".join(f"{number:,} {status}" for status, number in found["by_status"].items() if number)
    times = [f"{name} {_ms(found[key])}" for name, key in _TIMES if found[key] is not None]
    rows = [_row(one) for one in found["by_type"]]
    return [
        Text(),
        Text(f"{_whose(found)} at {show_instant(found['until'])}: {counts or 'none'}"),
        Text(f"  ended jobs are those since {show_instant(found['since'])}{_rates(found)}", style="dim"),
        Text(f"  throughput: {found['throughput_per_minute']:g} jobs/min"),
        *([Text(f"  an attempt takes: {', '.join(times)}")] if times else []),
        *([Text(f"  {counted(found['throttled'], 'attempt')} rate-limited")] if found["throttled"] else []),
        *([Text(f"  {counted(found['waiting'], 'job')} waiting{_oldest(found)}")] if found["waiting"] else []),
        *_silent(found),
        *([Text(), *table(_COLUMNS, rows, width)] if rows else []),
        *_tenants(found, width),
    ]


_TIMES = (("average", "average_ms"), ("p50", "p50_ms"), ("p95", "p95_ms"), ("p99", "p99_ms"), ("at most", "most_ms"))


def _whose(found: _Figures) -> str:
    of_tenant = f" of tenant {found['tenant']}" if found["tenant"] else ""
    return f"{found['job_type'] or 'jobs'}{of_tenant}"


def _rates(found: _Figures) -> str:
    shares = (("completed", "completion_rate"), ("failed", "dlq_rate"))
    rates = [f"{found[key]:.1%} {name}" for name, key in shares if found[key] is not None]
    return f": {', '.join(rates)}" if rates else ""


def _oldest(found: _Figures) -> str:
    seconds = found["oldest_waiting_seconds"]
    return "" if seconds is None else f" (oldest {show_duration(seconds * 1000)})"


def _silent(found: _Figures) -> list[Text]:
    """Warn of running jobs whose worker has missed three heartbeats."""
    if not found["silent"]:
        return []
    longest = show_duration(found["longest_silent_seconds"] * 1000)
    return [Text(f"  {counted(found['silent'], 'running job')} silent for up to {longest}", style="yellow")]


def _row(one: _Figures) -> Row:
    numbers = [
        one["completed"],
        one["failed_jobs"],
        one["running"],
        one["waiting"],
        one["failed"] + one["timed_out"],  # attempts
    ]
    times = [_ms(one[key]) for key in ("p95_ms", "p95_wait_ms")]
    return Row([one["job_type"], *(f"{number:,}" for number in numbers), *times])


def _tenants(found: _Figures, width: int) -> list[Text]:
    rows = [_tenant(one, found["until"]) for one in found.get("by_tenant", ())]
    return [Text(), *table(_TENANTS, rows, width)] if rows else []


def _tenant(one: _Figures, now: str) -> Row:
    since = one["waiting_since"]
    waited = datetime.fromisoformat(now) - datetime.fromisoformat(since) if since else None
    oldest = "" if waited is None else show_duration(max(0.0, waited.total_seconds() * 1000))
    numbers = [f"{one[name]:,}" for name in ("waiting", "running", "open_dead_letters")]
    return Row([one["tenant"], numbers[0], oldest, *numbers[1:]])


def _ms(value: float | None) -> str:
    return "" if value is None else show_duration(value)
