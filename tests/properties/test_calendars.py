"""Counting business days agrees with looking at each day."""

from __future__ import annotations

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from signalbox.calendars import add_business_days, business_days_between, is_business_day

regions = st.sampled_from(["GB-ENG", "DE-BY", "US", "SA", "JP"])
days = st.dates(date(2005, 1, 1), date(2080, 1, 1))


@given(regions, days, st.integers(-300, 300))
def test_the_nth_business_day_has_n_business_days_up_to_it(region: str, start: date, n: int) -> None:
    end = add_business_days(region, start, n)
    step = timedelta(days=1 if n >= 0 else -1)
    passed = [start + number * step for number in range(1, abs((end - start).days) + 1)]
    assert sum(is_business_day(region, day) for day in passed) == abs(n)
    assert n == 0 or is_business_day(region, end)
    assert business_days_between(region, start, end) == n
