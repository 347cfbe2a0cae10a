"""A cycle of GFS is taken when all of its 418 files have data, and never before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import example, given
from hypothesis import strategies as st

from forecasts.sources.gfs import CYCLE, KeyTemplate, cycles_between, is_complete

V16 = KeyTemplate.of("gfs.{date}/{cycle}/atmos/gfs.t{cycle}z.pgrb2.0p25.f{hour:03}")
V17 = KeyTemplate.of("gfs.{date}/{cycle}/products/atmos/grib2/0p25/gfs.t{cycle}z.pres_a.0p25.f{hour:03}.grib2")
MIDNIGHT = datetime(2026, 3, 10, tzinfo=UTC)

templates = st.sampled_from([V16, V17])
instants = st.integers(0, 40 * 86_400).map(lambda n: MIDNIGHT + timedelta(seconds=n))
files = st.sets(st.integers(0, 417), max_size=3)


@given(templates, files, files)
@example(V16, set(), set())
@example(V16, {417}, set())
@example(V17, set(), {0})
def test_a_cycle_is_complete_only_with_every_file_there_and_none_empty(
    template: KeyTemplate, missing: set[int], empty: set[int]
) -> None:
    keys = template.keys(MIDNIGHT)
    sizes = {key: 0 if n in empty else 1 for n, key in enumerate(keys) if n not in missing}

    assert len(set(keys)) == 418
    assert is_complete(keys, sizes) == (not missing and not empty)


@given(templates, instants)
def test_only_a_cycles_own_keys_begin_with_its_prefix(template: KeyTemplate, instant: datetime) -> None:
    [cycle] = cycles_between(instant - CYCLE, instant)
    prefix = template.prefix(cycle)

    assert all(key.startswith(prefix) for key in template.keys(cycle))
    assert not any(key.startswith(prefix) for key in template.keys(cycle + CYCLE))


@given(instants, instants)
def test_cycles_between_instants_are_those_an_hourly_walk_finds(one: datetime, other: datetime) -> None:
    since, until = sorted((one, other))
    first = since.replace(minute=0, second=0)
    hours = (first + timedelta(hours=n) for n in range(int((until - first) / timedelta(hours=1)) + 1))

    assert cycles_between(since, until) == [hour for hour in hours if hour.hour % 6 == 0 and since < hour <= until]
