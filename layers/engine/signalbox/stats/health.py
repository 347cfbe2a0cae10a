"""Judge the health of the whole job plane: pure, from `statistics`' counts. `mark_stale` judges single jobs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

# Twenty heartbeats: one late heartbeat, or a short database outage, does not make a job stale.
STALE_AFTER = timedelta(minutes=5)


class PlaneHealth(StrEnum):
    """Name the health of all jobs together."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    UNHEALTHY = "unhealthy"


@dataclass(frozen=True, slots=True)
class HealthSigns:
    """Collect the signs by which the plane's health is judged."""

    stale_jobs: int  # running without a recent heartbeat, or without a lease
    open_dead_letters: int  # that nobody has resolved, ignored or redriven
    failed_last_hour: int  # jobs that failed for good


def plane_health(signs: HealthSigns) -> PlaneHealth:
    """Return the worst health that any of the signs means."""
    if signs.stale_jobs > 10 or signs.open_dead_letters > 50:
        return PlaneHealth.UNHEALTHY
    if signs.stale_jobs > 0 or signs.open_dead_letters > 10 or signs.failed_last_hour > 20:
        return PlaneHealth.DEGRADED
    return PlaneHealth.HEALTHY
