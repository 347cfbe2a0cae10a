"""The model of costs, whatever the load: it grows with the jobs, stands without them, and its items are its sum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.cost.bill import Bill
from local.cost.estimate import estimate
from local.cost.load import Load
from local.cost.model import bill
from local.cost.stack import Stack
from tests.support.cost import stack

STACK = stack()
AURORA = replace(STACK, least_acu=0.0, instances=2, proxied=True, endpoint_zones=10, keys=1)
stacks = st.sampled_from([STACK, AURORA, stack(ForecastsPack="on", LaneBatchSize="1000")])
jobs = st.floats(0, 1e9)
loads = st.builds(
    Load,
    jobs_a_day=jobs,
    job_ms=st.none() | st.floats(0, 300_000),
    batch=st.none() | st.floats(1, 10_000),
    submitted_at_once=st.integers(1, 100_000),
    busy_hours=st.floats(0.1, 24),
    job_types=st.integers(1, 50),
    lane=st.sampled_from(["high", "normal", "low", "heavy"]),
)


@given(stacks, loads, jobs)
def test_more_jobs_never_cost_less(of: Stack, load: Load, more: float) -> None:
    fewer, most = sorted([load.jobs_a_day, more])
    less, much = (bill(of, replace(load, jobs_a_day=number)) for number in (fewer, most))
    assert less.usd <= much.usd * (1 + 1e-9)
    for group, usd in less.groups().items():
        assert usd <= much.groups()[group] * (1 + 1e-9) + 1e-9


@given(stacks, loads)
def test_without_jobs_only_the_standing_parts_are_paid(of: Stack, load: Load) -> None:
    standing = bill(of, replace(load, jobs_a_day=0))
    assert standing == bill(of, Load(0, lane=load.lane, busy_hours=load.busy_hours))
    assert [one for one in standing.items if "worker" in one.what or "messages" in one.what] == []


@given(stacks, loads)
def test_the_items_add_up(of: Stack, load: Load) -> None:
    found = bill(of, load)
    assert found.usd == pytest.approx(sum(found.groups().values()))
    assert found.usd == pytest.approx(sum(one.price.usd * one.quantity / one.price.per for one in found.items))
    assert all(one.quantity > 0 for one in found.items)


@given(stacks, loads)
def test_the_free_tier_takes_off_what_is_free_and_no_more(of: Stack, load: Load) -> None:
    full, less = bill(of, load), bill(of, load).with_free_tier()
    assert -1e-9 <= less.usd <= full.usd + 1e-9
    assert all(0 <= one.free <= one.quantity for one in less.items)
    for name in {one.price.name for one in less.items}:
        price, free = next(one.price for one in less.items if one.price.name == name), _free(less, name)
        assert free <= price.free * (1 + 1e-9)


@given(loads, st.floats(1, 100))
def test_longer_jobs_never_cost_less_here_or_in_containers(load: Load, times: float) -> None:
    short = replace(load, job_ms=load.job_ms or 1.0)
    long = replace(short, job_ms=(short.job_ms or 1.0) * times)
    for one, other in zip(_all_ways(short), _all_ways(long), strict=True):
        assert one.usd <= other.usd * (1 + 1e-9)


def _all_ways(load: Load) -> list[Bill]:
    found = estimate(STACK, load)
    return [found.bill, *found.beside]


def _free(found: Bill, price: str) -> Any:
    return sum(one.free for one in found.items if one.price.name == price)
