"""Health, of one job at work and of the whole job plane: pure, from what has been counted.

The figures are in `statistics`; `mark_stale` writes the health of jobs down by the same rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

# Twenty heartbeats: one that is late, or a database that is away for a moment, does not make a job stale.
STALE_AFTER = timedelta(minutes=5)


class JobHealth(StrEnum):
    """Of a running job."""

    HEALTHY = "HEALTHY"  # heard of lately
    STALE = "STALE"  # silent for five minutes: it may hang
    FAILED = "FAILED"  # its lease is over, and rescue_jobs has not taken it back yet


class PlaneHealth(StrEnum):
    """Of all jobs together."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    UNHEALTHY = "unhealthy"


@dataclass(frozen=True, slots=True)
class Signs:
    """What the health of the plane is judged by."""

    stale_jobs: int  # running and not heard of, or without a lease
    open_dead_letters: int  # that nobody has resolved, ignored or redriven
    failed_last_hour: int  # jobs that failed for good


def job_health(
    *, heartbeat_at: datetime | None, started_at: datetime, lease_expires_at: datetime, now: datetime
) -> JobHealth:
    """Heartbeats begin after some seconds: until then the start of the attempt counts."""
    if lease_expires_at <= now:
        return JobHealth.FAILED
    silent = now - (heartbeat_at or started_at)
    return JobHealth.STALE if silent > STALE_AFTER else JobHealth.HEALTHY


def plane_health(signs: Signs) -> PlaneHealth:
    """The worst that any of the signs says."""
    if signs.stale_jobs > 10 or signs.open_dead_letters > 50:
        return PlaneHealth.UNHEALTHY
    if signs.stale_jobs > 0 or signs.open_dead_letters > 10 or signs.failed_last_hour > 20:
        return PlaneHealth.DEGRADED
    return PlaneHealth.HEALTHY
