"""Match satellite and radar instants into nowcasts: pairs within the tolerance, nearest first, each instant once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Pair:
    """Pair two instants. The satellite's names the run: it is the rarer, so each may have a radar's."""

    satellite: datetime
    radar: datetime

    @property
    def apart(self) -> timedelta:
        return abs(self.satellite - self.radar)


def match(satellite: Iterable[datetime], radar: Iterable[datetime], tolerance: timedelta) -> list[Pair]:
    """Return the pairs, ordered by satellite instant. Of equally near pairs, the earlier comes first."""
    radars = sorted(set(radar))
    near = [pair for instant in set(satellite) for pair in _near(instant, radars, tolerance)]
    near.sort(key=lambda pair: (pair.apart, pair.satellite, pair.radar))
    taken_satellite: set[datetime] = set()
    taken_radar: set[datetime] = set()
    pairs = []
    for pair in near:
        if pair.satellite not in taken_satellite and pair.radar not in taken_radar:
            taken_satellite.add(pair.satellite)
            taken_radar.add(pair.radar)
            pairs.append(pair)
    return sorted(pairs, key=lambda pair: pair.satellite)


def _near(satellite: datetime, radars: Sequence[datetime], tolerance: timedelta) -> list[Pair]:
    first, last = bisect_left(radars, satellite - tolerance), bisect_right(radars, satellite + tolerance)
    return [Pair(satellite, radar) for radar in radars[first:last]]
