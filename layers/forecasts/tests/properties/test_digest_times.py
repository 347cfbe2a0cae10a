"""Every calendar gets one digest a day, at the time asked for, whatever the clocks do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from random import Random
from zoneinfo import ZoneInfo, available_timezones

from hypothesis import given
from hypothesis import strategies as st

from forecasts.digests.digest_times import next_digest
from forecasts.digests.preferences import DigestWish

DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
START, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)
# 'localtime' is the machine's own setting.
ZONES = sorted(available_timezones() - {"localtime"})
clocks = st.times().map(lambda moment: moment.replace(second=0, microsecond=0))
# In some of these years clocks changed in other ways, too: at midnight, by half an hour, by a day.
instants = st.integers(
    int(datetime(1975, 1, 1, tzinfo=UTC).timestamp()), int(datetime(2036, 1, 1, tzinfo=UTC).timestamp())
).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))


def daily(clock: time) -> DigestWish:
    return DigestWish(enabled=True, schedule="daily", time=clock, weekday=None)


def digests(wish: DigestWish, zone: ZoneInfo, since: datetime, until: datetime) -> Iterator[datetime]:
    """Yield each digest, planned from the one before, as the task does it."""
    due = next_digest(wish, zone, since)
    while due is not None and due < until:
        yield due
        due = next_digest(wish, zone, due)


def changes(zone: ZoneInfo, since: datetime, until: datetime) -> Iterator[tuple[datetime, timedelta]]:
    """Yield when the zone's clocks change, to the minute, and by how much."""
    moment, step = since, 6 * HOUR
    while moment < until:
        before, after = offset(zone, moment), offset(zone, moment + step)
        if before != after:
            low, high = moment, moment + step
            while high - low > MINUTE:
                middle = low + (high - low) // 2
                low, high = (middle, high) if offset(zone, middle) == before else (low, middle)
            yield high.replace(second=0, microsecond=0), after - before
        moment += step


def offset(zone: ZoneInfo, moment: datetime) -> timedelta:
    found = moment.astimezone(zone).utcoffset()
    assert found is not None
    return found


def is_skipped(day: date, clock: time, zone: ZoneInfo) -> bool:
    """Say whether no clock reads this on that day."""
    wall = datetime.combine(day, clock, zone)
    return wall.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != wall.replace(tzinfo=None)


def check(due: datetime, day: date, clock: time, zone: ZoneInfo) -> None:
    """Check that the day's digest comes at its time: the first of two, or moved by the gap that it falls into."""
    local = due.astimezone(zone)
    if not is_skipped(day, clock, zone):
        assert (local.date(), local.time(), local.fold) == (day, clock, 0)
        return
    moved = local.replace(tzinfo=None) - datetime.combine(day, clock, UTC).replace(tzinfo=None)
    assert moved == offset(zone, due) - offset(zone, due - moved)
    assert timedelta(0) < moved <= DAY


def test_every_zone_gets_one_punctual_digest_a_day_for_two_years() -> None:
    chance = Random(2026)
    for name in ZONES:
        zone, clock = ZoneInfo(name), time(chance.randrange(24), chance.randrange(60))
        due = list(digests(daily(clock), zone, START, END))
        first = due[0].astimezone(zone).date()
        assert len(due) in (730, 731)
        assert all(one < other for one, other in pairwise(due))
        for number, moment in enumerate(due):
            check(moment, first + number * DAY, clock, zone)


def test_times_touched_by_any_clock_change_come_once_a_day() -> None:
    touched = 0
    for name in ZONES:
        zone = ZoneInfo(name)
        for moment, by in changes(zone, START, END):
            wall = (moment - MINUTE).astimezone(zone).replace(tzinfo=None) + MINUTE
            for clock in sorted({(wall + by * part / 4).time().replace(second=0) for part in range(-1, 6)}):
                since = datetime.combine(wall.date() - 2 * DAY, clock, zone).astimezone(UTC)
                due = list(digests(daily(clock), zone, since, since + 5 * DAY))[:4]
                for number, at in enumerate(due):
                    check(at, wall.date() + (number - 1) * DAY, clock, zone)
                touched += 1
    assert touched > 1000


@given(st.sampled_from(ZONES), clocks, instants, st.floats(0, 0.999))
def test_the_next_digest_is_later_and_the_same_from_anywhere_before_it(
    name: str, clock: time, after: datetime, part: float
) -> None:
    zone = ZoneInfo(name)
    due = next_digest(daily(clock), zone, after)
    assert due is not None
    assert after < due <= after + 2 * DAY + HOUR
    assert next_digest(daily(clock), zone, after + (due - after) * part) == due


@given(st.sampled_from(ZONES), clocks, instants, st.integers(0, 6))
def test_a_weekly_digest_is_the_daily_one_of_its_weekday(name: str, clock: time, after: datetime, weekday: int) -> None:
    zone = ZoneInfo(name)
    weekly = DigestWish(enabled=True, schedule="weekly", time=clock, weekday=weekday)
    due = next_digest(weekly, zone, after)
    assert due is not None
    assert after < due <= after + 8 * DAY + HOUR
    # If its time is skipped near midnight it may come on the next day.
    local = due.astimezone(zone)
    assert weekday in (local.weekday(), (local - DAY).weekday())
    assert due in list(digests(daily(clock), zone, after, due + MINUTE))


@given(st.sampled_from(ZONES), instants)
def test_a_wish_without_a_time_has_no_next_digest(name: str, after: datetime) -> None:
    assert next_digest(DigestWish(enabled=False, weekday=None), ZoneInfo(name), after) is None
