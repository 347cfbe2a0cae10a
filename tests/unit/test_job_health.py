"""The health of a job and of the plane, one second and one job either side of each threshold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from signalbox.jobs.health import JobHealth, PlaneHealth, Signs, job_health, plane_health

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


@pytest.mark.parametrize(
    ("silence", "expected"),
    [
        (5 * MINUTE - SECOND, JobHealth.HEALTHY),
        (5 * MINUTE, JobHealth.HEALTHY),
        (5 * MINUTE + SECOND, JobHealth.STALE),
    ],
)
def test_a_job_is_stale_after_more_than_five_minutes_of_silence(silence: timedelta, expected: JobHealth) -> None:
    lease = NOW + MINUTE
    assert expected == job_health(
        heartbeat_at=NOW - silence, started_at=NOW - 60 * MINUTE, lease_expires_at=lease, now=NOW
    )
    assert expected == job_health(heartbeat_at=None, started_at=NOW - silence, lease_expires_at=lease, now=NOW)


@pytest.mark.parametrize(
    ("left", "expected"), [(SECOND, JobHealth.HEALTHY), (0 * SECOND, JobHealth.FAILED), (-SECOND, JobHealth.FAILED)]
)
def test_a_job_whose_lease_is_over_has_failed(left: timedelta, expected: JobHealth) -> None:
    assert expected == job_health(heartbeat_at=NOW, started_at=NOW, lease_expires_at=NOW + left, now=NOW)


@pytest.mark.parametrize(
    ("signs", "expected"),
    [
        (Signs(0, 0, 0), PlaneHealth.HEALTHY),
        (Signs(0, 10, 20), PlaneHealth.HEALTHY),
        (Signs(1, 0, 0), PlaneHealth.DEGRADED),
        (Signs(0, 11, 0), PlaneHealth.DEGRADED),
        (Signs(0, 0, 21), PlaneHealth.DEGRADED),
        (Signs(0, 0, 10_000), PlaneHealth.DEGRADED),
        (Signs(10, 50, 21), PlaneHealth.DEGRADED),
        (Signs(11, 0, 0), PlaneHealth.UNHEALTHY),
        (Signs(0, 51, 0), PlaneHealth.UNHEALTHY),
    ],
)
def test_the_plane_is_as_well_as_its_worst_sign(signs: Signs, expected: PlaneHealth) -> None:
    assert plane_health(signs) is expected
