"""Nowcast matching agrees with a model that looks at every pair again after each one it takes."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from forecasts.sources.nowcast import Pair, match

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
# Use a narrow range and coarse steps, so that ties, doubles and competition are frequent.
instants = st.sets(st.integers(0, 40).map(lambda n: NOON + timedelta(seconds=30 * n)), max_size=12)
tolerances = st.integers(0, 12).map(lambda n: timedelta(seconds=30 * n))


def brute_force(satellite: Collection[datetime], radar: Collection[datetime], tolerance: timedelta) -> set[Pair]:
    satellites, radars, pairs = set(satellite), set(radar), set()
    while possible := [Pair(s, r) for s in satellites for r in radars if abs(s - r) <= tolerance]:
        nearest = min(possible, key=lambda pair: (abs(pair.satellite - pair.radar), pair.satellite, pair.radar))
        pairs.add(nearest)
        satellites.remove(nearest.satellite)
        radars.remove(nearest.radar)
    return pairs


@given(instants, instants, tolerances)
def test_matching_takes_the_nearest_pair_again_and_again(
    satellite: set[datetime], radar: set[datetime], tolerance: timedelta
) -> None:
    assert set(match(satellite, radar, tolerance)) == brute_force(satellite, radar, tolerance)


@given(instants, instants, tolerances)
def test_no_instant_is_used_twice_and_no_possible_pair_remains(
    satellite: set[datetime], radar: set[datetime], tolerance: timedelta
) -> None:
    pairs = match(satellite, radar, tolerance)

    used = [pair.satellite for pair in pairs], [pair.radar for pair in pairs]
    assert [len(instants) for instants in used] == [len(set(instants)) for instants in used]
    left = satellite - set(used[0]), radar - set(used[1])
    assert [(s, r) for s in left[0] for r in left[1] if abs(s - r) <= tolerance] == []


@given(instants, instants, tolerances)
def test_the_order_of_listings_changes_nothing(
    satellite: set[datetime], radar: set[datetime], tolerance: timedelta
) -> None:
    forwards = match(sorted(satellite), sorted(radar), tolerance)
    assert match(sorted(satellite, reverse=True), sorted(radar, reverse=True), tolerance) == forwards
    assert forwards == sorted(forwards, key=lambda pair: pair.satellite)
