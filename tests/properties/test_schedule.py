"""These rules hold for any schedule and any instant."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.errors import ScheduleRefused
from signalbox.packs.schedule import Schedule

ZONES = [
    UTC,
    ZoneInfo("Europe/Berlin"),
    ZoneInfo("America/New_York"),
    ZoneInfo("Australia/Lord_Howe"),
    timezone(timedelta(hours=5, minutes=45)),
]
# From 2005 to 2080, in any zone: hypothesis takes its bounds naive.
BOUNDS = [datetime(year, 1, 1, tzinfo=UTC).replace(tzinfo=None) for year in (2005, 2080)]
instants = st.datetimes(*BOUNDS, timezones=st.sampled_from(ZONES), allow_imaginary=False)


@st.composite
def expressions(draw: st.DrawFn) -> str:
    """Draw anything that EventBridge takes, from each minute to once in four years."""
    if draw(st.integers(0, 4)) == 0:
        count, unit = draw(st.integers(1, 90)), draw(st.sampled_from(["minute", "hour", "day"]))
        return f"rate({count} {unit}{'' if count == 1 else 's'})"
    minute = draw(st.one_of(st.just("*"), st.integers(0, 59).map(str), steps(59), lists(0, 59)))
    hour = draw(st.one_of(st.just("*"), st.integers(0, 23).map(str), steps(23), lists(0, 23)))
    month = draw(st.one_of(st.just("*"), lists(1, 12), st.sampled_from(["JAN", "FEB,AUG", "3-5"])))
    day = draw(st.one_of(st.just("*"), lists(1, 28), st.sampled_from(["L", "1-7"])))
    weekday = draw(st.one_of(lists(1, 7), st.sampled_from(["MON-FRI", "2#1", "6L", "SUN,WED", "2-6"])))
    days = f"{day} {month} ?" if draw(st.booleans()) else f"? {month} {weekday}"
    return f"cron({minute} {hour} {days} *)"


def steps(most: int) -> st.SearchStrategy[str]:
    return st.tuples(st.integers(0, most), st.integers(1, most)).map(lambda pair: f"{pair[0]}/{pair[1]}")


def lists(least: int, most: int) -> st.SearchStrategy[str]:
    return st.lists(st.integers(least, most), min_size=1, max_size=4, unique=True).map(lambda n: ",".join(map(str, n)))


@given(expressions(), instants)
def test_slot_never_follows_its_instant_and_is_its_own_slot(expression: str, instant: datetime) -> None:
    schedule = Schedule.parse(expression)
    slot = schedule.slot_of(instant)
    assert slot <= instant
    assert slot.utcoffset() == timedelta(0)
    assert schedule.slot_of(slot) == slot


@given(expressions(), instants, instants)
def test_a_later_instant_never_has_an_earlier_slot(expression: str, one: datetime, other: datetime) -> None:
    schedule = Schedule.parse(expression)
    earlier, later = sorted([one, other])
    assert schedule.slot_of(earlier) <= schedule.slot_of(later)


@given(expressions(), instants)
def test_no_fire_lies_between_a_slot_and_the_next(expression: str, instant: datetime) -> None:
    schedule = Schedule.parse(expression)
    slot, following = schedule.slot_of(instant), schedule.next_after(instant)
    assert slot <= instant < following
    assert schedule.next_after(slot) == following
    assert schedule.slot_of(following) == following
    assert schedule.slot_of(following - timedelta(microseconds=1)) == slot


@given(expressions(), instants, st.timedeltas(timedelta(0), timedelta(days=2)))
def test_the_fires_between_two_instants_are_the_slots_of_all_instants_there(
    expression: str, after: datetime, span: timedelta
) -> None:
    schedule = Schedule.parse(expression)
    fires = list(schedule.between(after, after + span))
    assert fires == sorted(set(fires))
    assert all(after < fire <= after + span for fire in fires)
    last = schedule.slot_of(after + span)
    assert (last in fires) == (last > after)


@given(instants)
def test_the_quick_way_and_the_cron_library_agree(instant: datetime) -> None:
    """0/15 is answered by a floor division; 0,15,30,45 means the same and goes through the library."""
    for quick, slow in [
        ("cron(* * * * ? *)", "cron(0-59 * * * ? *)"),
        ("cron(0/15 * * * ? *)", "cron(0,15,30,45 * * * ? *)"),
        ("cron(7/15 * * * ? *)", "cron(7,22,37,52 * * * ? *)"),
        ("cron(5 * * * ? *)", "cron(5 0-23 * * ? *)"),
        ("cron(30 2 * * ? *)", "cron(30 2 ? * 1-7 *)"),
    ]:
        assert Schedule.parse(quick).slot_of(instant) == Schedule.parse(slow).slot_of(instant)
        assert Schedule.parse(quick).next_after(instant) == Schedule.parse(slow).next_after(instant)


@given(st.text("cronate(0123456789*/,-?LW# minutes)", max_size=30), instants)
def test_any_instant_gets_a_slot_or_a_refusal(expression: str, instant: datetime) -> None:
    with suppress(ScheduleRefused):
        schedule = Schedule.parse(expression)
        with suppress(ScheduleRefused):  # it may be silent for years, like the 29th of February
            assert schedule.slot_of(instant) <= instant


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/St_Johns"])
def test_a_clock_that_steps_across_both_changes_sees_each_slot_once(zone: str) -> None:
    """Slots are in UTC: a wall clock that jumps or repeats an hour moves none of them."""
    local, schedule = ZoneInfo(zone), Schedule.parse("cron(0/15 * * * ? *)")
    start, end = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
    seen, minute = [], start
    while minute < end:
        seen.append(schedule.slot_of(minute.astimezone(local)))
        minute += timedelta(minutes=15)
    assert len(seen) == len(set(seen)) == 365 * 96
    assert seen == list(schedule.between(start - timedelta(seconds=1), end - timedelta(seconds=1)))
