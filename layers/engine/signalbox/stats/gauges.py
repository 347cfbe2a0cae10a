"""Read gauges off the job plane every five minutes, for the alarms and the dashboard: pure, names and values.

The alarms of the template use the same limits as `alerts`; a test compares them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from signalbox.packs.job_type import Lane
from signalbox.stats.figures import Figures
from signalbox.stats.statistics import Live, PlaneReport, Statistics, longest_wait

LEAST_ATTEMPTS = 100  # below this a rate says nothing


@dataclass(frozen=True, slots=True)
class Connections:
    """Count the connections to all databases of the server, since they share its limit."""

    used: int
    limit: int


def read_off(
    day: Statistics, report: PlaneReport, hour: Figures, lately: Figures, connections: Connections
) -> dict[str, float]:
    """Return the gauges. Rates and times without data are zero, so that an alarm ends."""
    oldest, readings = day.oldest_waiting, report.readings
    ended = hour.completed + hour.failed
    rate = max(readings.failure_rate or 0, hour.failed / ended if ended > LEAST_ATTEMPTS else 0)
    return {
        "JobsWaiting": day.waiting,
        "JobsRunning": day.by_status["running"],
        "OldestWaitingSeconds": oldest.total_seconds() if oldest else 0,
        "WorkersDown": day.silence.stale_workers + len(readings.standing_lanes),
        "FailureRatePercent": 100 * rate,
        "FailedJobsPercent": 100 * (day.dlq_rate or 0) if day.total.completed + day.failed_jobs > LEAST_ATTEMPTS else 0,
        "DeadLettersPending": day.pending_dead_letters,
        "DurationP95Ms": readings.p95_ms or 0,
        "StartWaitP95Ms": lately.wait_ms(0.95) or 0,
        "DatabaseConnectionsPercent": 100 * connections.used / connections.limit,
    }


def lanes(live: Iterable[Live], now: datetime) -> dict[str, Any]:
    """Return for every lane, for the log, its jobs by status and how many seconds the oldest has been due."""
    by_lane: dict[str, list[Live]] = {lane: [] for lane in Lane}
    for one in live:
        by_lane[one.lane].append(one)
    return {lane: _lane(found, now) for lane, found in by_lane.items()}


def _lane(found: list[Live], now: datetime) -> dict[str, float]:
    by_status: dict[str, float] = {}
    for one in found:
        by_status[one.status] = by_status.get(one.status, 0) + one.number
    oldest = longest_wait(found, now)
    return {**by_status, "oldest_seconds": oldest.total_seconds() if oldest else 0}
