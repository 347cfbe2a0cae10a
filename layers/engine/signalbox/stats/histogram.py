"""Keep histograms of milliseconds, which can be added up where percentiles can't: pure.

Bucket i counts values from √2^i up to √2^(i+1) milliseconds; the first also smaller, the last also larger ones. So any
percentile is off by less than a factor of √2, and 64 buckets reach from a millisecond to 49 days.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

BUCKETS = 64
# Where each bucket begins, as the database's width_bucket takes it.
BOUNDS = tuple(2 ** (place / 2) for place in range(BUCKETS))
NOTHING = (0,) * BUCKETS


def add(*histograms: Sequence[int]) -> tuple[int, ...]:
    """Return the sum of all."""
    return tuple(map(sum, zip_longest(*histograms, fillvalue=0)))


def percentile(counts: Sequence[int], share: float, most: float) -> float | None:
    """Return about the value that this share of the values does not exceed, or None where there are no values.

    No value exceeds `most`. Within a bucket the values are taken to be spread evenly on its logarithmic scale.
    """
    wanted = share * sum(counts)
    if not wanted:
        return None
    passed = 0
    for place, count in enumerate(counts):
        if passed + count >= wanted:
            found = 2 ** ((place + (wanted - passed) / count) / 2)
            return min(found, most)
        passed += count
    return most
