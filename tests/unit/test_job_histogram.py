"""Percentiles of summed histograms come close to those of the values themselves."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.stats.histogram import BOUNDS, BUCKETS, NOTHING, add, percentile

values = st.lists(st.integers(1, 10_000_000), min_size=1, max_size=200)
shares = st.sampled_from([0.5, 0.95, 0.99, 1.0])


def histogram(milliseconds: list[int]) -> tuple[int, ...]:
    counts = [0] * BUCKETS
    for value in milliseconds:
        counts[sum(bound <= value for bound in BOUNDS[1:])] += 1
    return tuple(counts)


def test_of_nothing_there_is_no_percentile() -> None:
    assert percentile(NOTHING, 0.95, 0) is None


@given(values, shares)
def test_a_percentile_is_off_by_less_than_a_bucket(milliseconds: list[int], share: float) -> None:
    found = percentile(histogram(milliseconds), share, max(milliseconds))
    exact = sorted(milliseconds)[math.ceil(share * len(milliseconds)) - 1]
    assert found is not None
    assert exact / math.sqrt(2) - 1e-6 <= found <= exact * math.sqrt(2) + 1e-6


@given(values, values, shares)
def test_added_histograms_are_the_histogram_of_all(one: list[int], other: list[int], share: float) -> None:
    both = add(histogram(one), histogram(other))
    assert both == histogram(one + other)


@given(values)
def test_percentiles_rise_and_end_at_the_most(milliseconds: list[int]) -> None:
    counts, most = histogram(milliseconds), max(milliseconds)
    found = [percentile(counts, share, most) or 0 for share in (0.01, 0.5, 0.95, 0.99, 1.0)]
    assert found == sorted(found)
    assert found[-1] == pytest.approx(most, rel=0.5)
    assert found[-1] <= most


def test_histograms_of_other_lengths_add_up_as_well() -> None:
    assert add((1, 2), (1, 1, 1)) == (2, 3, 1)


def test_64_buckets_reach_from_a_millisecond_to_weeks() -> None:
    assert BOUNDS[0] == 1
    assert BOUNDS[-1] > 30 * 86_400_000
    assert list(BOUNDS) == sorted(BOUNDS)
