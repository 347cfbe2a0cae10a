"""Schedules in every time zone fire at the times that clocks show, once, and lose none."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

from hypothesis import given, settings
from hypothesis import strategies as st

from signalbox.errors import ScheduleRefused
from signalbox.job_schedules.cron import Cron
from signalbox.job_schedules.schedule import LATE, MOST_AT_ONCE, JobSchedule, due_runs, next_run

DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
# 'localtime' is whatever the machine is set to.
ZONES = sorted(available_timezones() - {"localtime"})
FIRST, LAST = datetime(1975, 1, 1, tzinfo=UTC), datetime(2036, 1, 1, tzinfo=UTC)


def seconds_between(first: datetime, last: datetime) -> st.SearchStrategy[datetime]:
    bounds = int(first.timestamp()), int(last.timestamp())
    return st.integers(*bounds).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))


instants = seconds_between(FIRST, LAST)


@cache
def changes(zone: str) -> list[datetime]:
    """Return the days on which the zone's clocks change."""
    days = [FIRST + n * DAY for n in range((LAST - FIRST).days)]
    offsets = [day.astimezone(ZoneInfo(zone)).utcoffset() for day in days]
    return [day for day, (before, after) in zip(days, pairwise(offsets), strict=False) if before != after]


@st.composite
def places(draw: st.DrawFn) -> tuple[str, datetime]:
    """Draw a zone and an instant near a change of its clocks, if there is one."""
    zone = draw(st.sampled_from(ZONES))
    day = draw(st.sampled_from(changes(zone) or [datetime(2026, 3, 1, tzinfo=UTC)]))
    return zone, draw(seconds_between(day - DAY, day + DAY))


def minutes() -> st.SearchStrategy[set[int]]:
    return st.one_of(st.sets(st.integers(0, 59), min_size=1, max_size=4), st.just(set(range(0, 60, 10))))


def hours() -> st.SearchStrategy[set[int]]:
    early = st.sets(st.integers(0, 4), min_size=1)  # when most clocks are changed
    return st.one_of(early, st.sets(st.integers(0, 23), min_size=1, max_size=23), st.just(set(range(24))))


def written(numbers: set[int]) -> str:
    return ",".join(map(str, sorted(numbers)))


def shown(zone: ZoneInfo, minute: datetime) -> datetime:
    return minute.astimezone(zone).replace(tzinfo=None)


def expected(zone: ZoneInfo, at: set[int], in_hours: set[int], since: datetime, days: int) -> list[datetime]:
    """Find the fires minute by minute, by elapsed time or by the calendar."""

    def meant(wall: datetime) -> bool:
        return wall.minute in at and wall.hour in in_hours

    number = days * 24 * 60
    if len(in_hours) == 24:
        # Clocks may be set to a part of a minute; the expression means whole ones.
        start = since.replace(second=0) - MINUTE
        found = {minute for n in range(number) if meant(shown(zone, minute := start + n * MINUTE))}
        return sorted(fire for fire in found if fire > since)
    midnight = shown(zone, since).replace(hour=0, minute=0, second=0) - 2 * DAY
    walls = (midnight + n * MINUTE for n in range(number + 4 * 24 * 60))
    fires = {wall.replace(tzinfo=zone).astimezone(UTC) for wall in walls if meant(wall)}
    return sorted(fire for fire in fires if since < fire)


def whole_minutes(zone: ZoneInfo, since: datetime, days: int) -> bool:
    """Return whether all offsets are whole minutes, as most are."""
    offsets = ((since + n * DAY).astimezone(zone).utcoffset() or timedelta(0) for n in range(-2, days + 2))
    return all(offset % MINUTE == timedelta(0) for offset in offsets)


@settings(deadline=None)
@given(places(), minutes(), hours())
def test_cron_fires_when_the_clocks_of_its_zone_say_so(
    place: tuple[str, datetime], at: set[int], in_hours: set[int]
) -> None:
    name, since = place
    zone = ZoneInfo(name)
    if not whole_minutes(zone, since, 3):
        return
    cron = Cron.parse(f"{written(at)} {written(in_hours)} * * *", name)
    due, found = cron.next_after(since), list[datetime]()
    while due is not None and due < since + 2 * DAY:
        found.append(due)
        due = cron.next_after(due)
    assert found == [fire for fire in expected(zone, at, in_hours, since, 3) if fire < since + 2 * DAY]


@settings(deadline=None)
@given(
    st.sampled_from(
        ["30 2 * * *", "0 0 * * *", "15 */6 * * *", "0 9 * * MON-FRI", "59 23 L * *", "0 1 1 * *", "5 3 * * 7#1"]
    ),
    st.sampled_from(ZONES),
    instants,
)
def test_calendar_cron_fires_once_at_each_wall_time_across_clock_changes(
    expression: str, zone: str, since: datetime
) -> None:
    cron = Cron.parse(expression, zone)
    fires = [since]
    for _ in range(6):
        fire = cron.next_after(fires[-1])
        assert fire is not None
        fires.append(fire)
    assert all(one < another for one, another in pairwise(fires))
    walls = [shown(ZoneInfo(zone), fire) for fire in fires[1:]]
    assert len(set(walls)) == len(walls)


@given(st.text(alphabet="0123456789*/,-#L MONW?", max_size=25), st.sampled_from(["UTC", "Asia/Kathmandu", "Mars/Base"]))
def test_any_text_is_a_cron_expression_or_refused(text: str, zone: str) -> None:
    since = datetime(2026, 3, 1, tzinfo=UTC)
    fire = None
    with suppress(ScheduleRefused):
        fire = Cron.parse(text, zone).next_after(since)
    assert fire is None or fire > since


def schedule(**fields: object) -> JobSchedule:
    plain = JobSchedule(
        id="0", name="s", job_type="do_nothing", payload_template={}, options={}, schedule_type="cron",
        cron_expression=None, interval_ms=None, run_at=None, starts_at=None, timezone="UTC", catch_up="latest",
        enabled=True, paused_at=None, paused_reason=None, paused_by=None, last_run_at=None,
        next_run_at=None, run_count=0, missed_count=0, max_runs=None, expires_at=None, error=None, tenant=None,
        created_by=None, created_at=FIRST, updated_at=FIRST, metadata=None,
    )  # fmt: skip
    return replace(plain, **fields)  # type: ignore[arg-type]


@given(st.integers(1000, 10**9), instants, instants, st.booleans())
def test_an_interval_never_drifts_from_where_it_began(
    step_ms: int,
    start: datetime,
    after: datetime,
    asked_for: bool,
) -> None:
    begun = {"starts_at": start} if asked_for else {"created_at": start}
    step = timedelta(milliseconds=step_ms)
    fire = next_run(schedule(schedule_type="interval", interval_ms=step_ms, **begun), after)
    assert fire is not None
    assert fire > after
    assert (fire - start) % step == timedelta(0)
    first = start if asked_for else start + step
    assert fire == first if after < first else fire - step <= after


@st.composite
def overdue(draw: st.DrawFn) -> tuple[JobSchedule, datetime]:
    due = draw(instants)
    made = schedule(
        schedule_type="interval",
        interval_ms=draw(st.integers(60_000, 86_400_000)),
        starts_at=due,
        next_run_at=due,
        catch_up=draw(st.sampled_from(["all", "latest", "skip"])),
        max_runs=draw(st.none() | st.integers(1, 200)),
        expires_at=draw(st.none() | st.timedeltas(MINUTE, 30 * DAY).map(lambda span: due + span)),
    )
    return made, due + draw(st.timedeltas(-DAY, 20 * DAY))


@given(overdue())
def test_each_instant_that_is_due_gets_a_job_or_is_counted_as_missed(case: tuple[JobSchedule, datetime]) -> None:
    made, now = case
    assert made.next_run_at is not None
    assert made.interval_ms is not None
    turn, step = due_runs(made, now), timedelta(milliseconds=made.interval_ms)
    last_instant = min(now, made.expires_at - timedelta(microseconds=1)) if made.expires_at else now
    number = max(0, (last_instant - made.next_run_at) // step + 1)
    handled = len(turn.runs) + turn.missed
    assert list(turn.runs) == sorted(set(turn.runs))
    assert all(run <= now for run in turn.runs)
    assert made.max_runs is None or len(turn.runs) <= made.max_runs
    if made.catch_up == "all":
        assert (len(turn.runs), turn.missed) == (min(number, MOST_AT_ONCE, made.max_runs or number), 0)
    elif handled < 10_000:
        assert handled == number
        assert len(turn.runs) <= 1
        last = made.next_run_at + (number - 1) * step
        assert turn.runs == (() if not number or (made.catch_up == "skip" and now - last > LATE) else (last,))
    if turn.next_run_at is not None and handled:
        assert turn.next_run_at == made.next_run_at + handled * step
