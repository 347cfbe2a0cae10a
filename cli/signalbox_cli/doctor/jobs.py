"""Check the jobs themselves: dead letters, silent workers, and the alerts of the job plane."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from signalbox_cli.doctor.check import Finding, fail, ok, warn
from signalbox_cli.target.target import Target
from signalbox_cli.views.numbers import counted
from signalbox_cli.views.times import show_span


def check_jobs(target: Target) -> list[Finding]:
    return judge_jobs(target.operate("show_health"), target.operate("show_statistics", hours=1))


def judge_jobs(health: Mapping[str, Any], statistics: Mapping[str, Any]) -> list[Finding]:
    """Return what a person must act on, or one finding that says how the jobs are."""
    found = list(_faults(health, statistics))
    live = ", ".join(f"{statistics['by_status'][status]:,} {status}" for status in ("pending", "queued", "running"))
    return found or [ok("jobs", f"{live}; no open dead letters")]


def _faults(health: Mapping[str, Any], statistics: Mapping[str, Any]) -> Iterator[Finding]:
    for alert in health["alerts"]:
        judged = fail if alert["severity"] == "critical" else warn
        yield judged("jobs", f"{alert['name']}: {alert['message']}", alert["advice"])
    if silent := statistics["silent"]:
        longest = show_span(timedelta(seconds=statistics["longest_silent_seconds"]))
        what = f"{counted(silent, 'running job')} silent for up to {longest}"
        yield warn("jobs", what, "rescue_jobs takes them back once their lease is over; see `signalbox logs worker`")
    if letters := health["open_dead_letters"]:
        judged = fail if health["status"] == "unhealthy" else warn
        yield judged("jobs", counted(letters, "open dead letter"), "`signalbox dead-letters --kinds` groups them")
    if failed := health["failed_last_hour"]:
        what = f"{counted(failed, 'job')} failed in the last hour"
        yield warn("jobs", what, "`signalbox jobs --status failed --since 1h` lists them")
