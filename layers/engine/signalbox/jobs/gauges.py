"""What is read off the job plane every five minutes, for the alarms and the dashboard: pure, names and values.

The alarms of the template compare these with the limits that `alerts` and `health` have; a test holds them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from signalbox.jobs.figures import Figures
from signalbox.jobs.health import PlaneHealth
from signalbox.jobs.job_type import Lane
from signalbox.jobs.statistics import LIVE, Live, PlaneReport, Statistics, longest_wait

Measure = Literal["count", "percent", "seconds", "milliseconds"]
# A number, since an alarm knows nothing else: the worse the more.
HEALTH = {PlaneHealth.HEALTHY: 0, PlaneHealth.DEGRADED: 1, PlaneHealth.UNHEALTHY: 2}


@dataclass(frozen=True, slots=True)
class LaneGauges:
    """Of one lane."""

    jobs: Mapping[str, int]
    oldest_seconds: float


@dataclass(frozen=True, slots=True)
class Connections:
    """Of all databases of the server, since they share its limit."""

    used: int
    limit: int


def read_off(
    day: Statistics, report: PlaneReport, lately: Figures, connections: Connections
) -> dict[Measure, Mapping[str, float]]:
    """By how they are measured. Rates and times of nothing are left out, or zero where an alarm is to end."""
    oldest, rate = day.oldest_waiting, report.readings.failure_rate
    lasted = {f"AttemptDurationP{part:.0f}": lately.duration_ms(part / 100) for part in (50.0, 95.0, 99.0)}
    return {
        "count": {
            **{f"Jobs{status.capitalize()}": day.by_status[status] for status in LIVE},
            "JobsWaiting": day.waiting,
            "JobsStale": day.stale,
            "DeadLettersPending": day.pending_dead_letters,
            "WorkersSilent": day.silent_workers,
            "LanesStanding": len(report.readings.standing_lanes),
            "PlaneHealth": HEALTH[report.status],
            "DatabaseConnections": connections.used,
        },
        "percent": {
            "DayFailureRate": 100 * (rate or 0),
            "DayFailedJobs": 100 * (day.dlq_rate or 0) if day.total.completed + day.failed_jobs > 100 else 0,
            "DatabaseConnectionsShare": 100 * connections.used / connections.limit,
        },
        "seconds": {"OldestWaiting": oldest.total_seconds() if oldest else 0},
        "milliseconds": {
            "DayDurationP95": report.readings.p95_ms or 0,
            "StartWaitP95": lately.wait_ms(0.95) or 0,
            **{name: value for name, value in lasted.items() if value is not None},
        },
    }


def read_off_lanes(live: Iterable[Live], now: datetime) -> dict[str, LaneGauges]:
    """Of every lane, those without any jobs as well."""
    lanes: dict[str, list[Live]] = {lane: [] for lane in Lane}
    for one in live:
        lanes[one.lane].append(one)
    return {lane: _read_off_lane(found, now) for lane, found in lanes.items()}


def _read_off_lane(found: Sequence[Live], now: datetime) -> LaneGauges:
    jobs = {f"Jobs{status.capitalize()}": sum(one.number for one in found if one.status == status) for status in LIVE}
    oldest = longest_wait(found, now)
    return LaneGauges(jobs, oldest.total_seconds() if oldest else 0)
