"""Histograms of milliseconds, which can be added up where percentiles can't: pure.

Bucket i counts what took from √2^i up to √2^(i+1) milliseconds; the first also less, the last also more. So a
percentile is off by less than a factor of √2, whatever it is of, and 64 buckets reach from a millisecond to 49 days.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

BUCKETS = 64
# What each bucket begins with, as the database's width_bucket takes them.
BOUNDS = tuple(2 ** (place / 2) for place in range(BUCKETS))
NOTHING = (0,) * BUCKETS


def add(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    """Both together."""
    return tuple(left + right for left, right in zip_longest(one, other, fillvalue=0))


def percentile(counts: Sequence[int], share: float, most: float) -> float | None:
    """What that share of the values does not exceed, about, and `most` none does; None where there are no values.

    Within a bucket the values are taken to be spread evenly on its logarithmic scale.
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
