"""The plane's health changes exactly at each threshold."""

from __future__ import annotations

import pytest

from signalbox.stats.health import HealthSigns, PlaneHealth, plane_health


@pytest.mark.parametrize(
    ("signs", "expected"),
    [
        (HealthSigns(0, 0, 0), PlaneHealth.HEALTHY),
        (HealthSigns(0, 10, 20), PlaneHealth.HEALTHY),
        (HealthSigns(1, 0, 0), PlaneHealth.DEGRADED),
        (HealthSigns(0, 11, 0), PlaneHealth.DEGRADED),
        (HealthSigns(0, 0, 21), PlaneHealth.DEGRADED),
        (HealthSigns(0, 0, 10_000), PlaneHealth.DEGRADED),
        (HealthSigns(10, 50, 21), PlaneHealth.DEGRADED),
        (HealthSigns(11, 0, 0), PlaneHealth.UNHEALTHY),
        (HealthSigns(0, 51, 0), PlaneHealth.UNHEALTHY),
    ],
)
def test_the_plane_is_as_well_as_its_worst_sign(signs: HealthSigns, expected: PlaneHealth) -> None:
    assert plane_health(signs) is expected
