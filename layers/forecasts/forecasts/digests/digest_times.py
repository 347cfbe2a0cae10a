"""Compute when digests are due: once per day (or week) of the organisation's own calendar, whatever its clocks do.

A time that a clock change skips moves by as much as the clock; a repeated time counts the first time only.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from forecasts.digests.preferences import DigestWish

DAY = timedelta(days=1)


def next_digest(wish: DigestWish, zone: ZoneInfo, after: datetime) -> datetime | None:
    """Return the first wished instant after this one, whether the wish is on or off; None if it names no time."""
    if wish.time is None or wish.missing:
        return None
    # Start a day early: if clocks skip midnight, yesterday's late digest comes today.
    day = after.astimezone(zone).date() - DAY
    while not (_is_wanted(wish, day) and (due := _instant(day, wish.time, zone)) > after):
        day += DAY
    return due


def _is_wanted(wish: DigestWish, day: date) -> bool:
    return wish.schedule == "daily" or day.weekday() == wish.weekday


def _instant(day: date, clock: time, zone: ZoneInfo) -> datetime:
    # A repeated time means the first, as fold is 0; in a gap the offset from before it moves the time by the gap.
    return datetime.combine(day, clock, zone).astimezone(UTC)
