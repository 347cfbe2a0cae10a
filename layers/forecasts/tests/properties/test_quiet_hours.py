"""Quiet hours end at the right time in every zone and across every change of its clocks."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo, available_timezones

from hypothesis import given
from hypothesis import strategies as st

from forecasts.digests.quiet_hours import resume_at

ZONES = sorted(available_timezones() - {"localtime"})
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
clocks = st.times().map(lambda moment: moment.replace(second=0, microsecond=0))
# From 1973 on all offsets are whole minutes.
instants = st.integers(
    int(datetime(1973, 1, 1, tzinfo=UTC).timestamp()), int(datetime(2036, 1, 1, tzinfo=UTC).timestamp())
).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))


def is_quiet(start: time, end: time, zone: ZoneInfo, moment: datetime) -> bool:
    """Judge by what the local clock reads."""
    clock = moment.astimezone(zone).time()
    return start <= clock < end if start <= end else not end <= clock < start


@given(st.sampled_from(ZONES), clocks, clocks, instants, st.floats(0, 0.999))
def test_it_is_quiet_from_now_until_then_and_not_at_that_moment(
    name: str, start: time, end: time, now: datetime, part: float
) -> None:
    zone = ZoneInfo(name)
    wishes = {"quiet_hours": {"start": f"{start:%H:%M}", "end": f"{end:%H:%M}"}}
    then = resume_at(wishes, name, now)
    assert now <= then <= now + 2 * DAY
    assert not is_quiet(start, end, zone, then)
    if then > now:
        assert is_quiet(start, end, zone, now)
        assert is_quiet(start, end, zone, then - SECOND)
        assert is_quiet(start, end, zone, now + (then - now) * part)


@given(clocks, clocks, instants)
def test_where_no_clock_changes_they_end_at_their_end(start: time, end: time, now: datetime) -> None:
    then = resume_at({"quiet_hours": {"start": f"{start:%H:%M}", "end": f"{end:%H:%M}"}}, "Asia/Kolkata", now)
    assert then == now or then.astimezone(ZoneInfo("Asia/Kolkata")).time() == end
