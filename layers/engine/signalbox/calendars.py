"""Count business days by region, months from a day, and days by zone. All pure.

A region is a country or one of its subdivisions, by ISO 3166: "DE", "GB-ENG". Its weekends, its public holidays and the
days that take their place are those of the library `holidays`, which the first question loads.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from signalbox.errors import Refused

if TYPE_CHECKING:
    from holidays import HolidayBase

Region = str
_REGION = re.compile(r"([A-Z]{2})(?:-(.+))?")
_DAY = timedelta(days=1)


def is_business_day(region: Region, day: date) -> bool:
    """Say whether the day is neither in a weekend nor a public holiday of the region."""
    return _calendar(region, day.year).is_working_day(day)


def next_business_day(region: Region, day: date) -> date:
    """Return the first business day after the day."""
    return add_business_days(region, day, 1)


def add_business_days(region: Region, day: date, n: int) -> date:
    """Return the nth business day after the day, or before it where n is negative; the day itself for 0."""
    _calendar(region, day.year)  # refuses
    step = _DAY if n > 0 else -_DAY
    for _ in range(abs(n)):
        day += step
        while not is_business_day(region, day):
            day += step
    return day


def business_days_between(region: Region, first: date, last: date) -> int:
    """Return the n by which `add_business_days` leads from the first day to the last, where that is a business day.

    It counts the business days after the first, up to and including the last; below 0 where the last is earlier.
    """
    step = 1 if last >= first else -1
    days = range(first.toordinal() + step, last.toordinal() + step, step)
    return step * sum(is_business_day(region, date.fromordinal(day)) for day in days)


def add_months(day: date, n: int) -> date:
    """Return the same day n months later, or the last of that month where it is shorter."""
    year, month = divmod(day.year * 12 + day.month - 1 + n, 12)
    if not date.min.year <= year <= date.max.year:
        raise Refused(f"{day} and {n} months: the date is out of range")
    return day.replace(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def today(zone: str, now: datetime) -> date:
    """Return the date that calendars in the zone show at this instant."""
    if now.tzinfo is None:
        raise Refused(f"{now} names no instant: give it a time zone")
    return now.astimezone(zone_of(zone)).date()


def zone_of(name: str, kind: type[Refused] = Refused) -> ZoneInfo:
    """Return the time zone of that name, or raise an error of this kind where there is none."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise kind(f"time zone '{name[:60]}' is not known; valid are names such as 'Europe/Berlin' or 'UTC'") from None


# By the year, since a calendar that grows while it is asked gives another thread an unfinished year.
@lru_cache(maxsize=256)
def _calendar(region: Region, year: int) -> HolidayBase:
    from holidays import country_holidays

    unknown = Refused(
        f"region '{region[:60]}' is not known; valid are countries such as 'DE', and subdivisions such as 'GB-ENG'"
    )
    parts = _REGION.fullmatch(region)
    if parts is None:
        raise unknown
    try:
        calendar = country_holidays(parts[1], subdiv=parts[2], years=year, expand=False)
    except NotImplementedError:  # how the library says so
        raise unknown from None
    if not calendar.start_year <= year <= calendar.end_year:
        known = f"{calendar.start_year} to {calendar.end_year}"
        raise Refused(f"the calendar of {region} is known for the years {known}, not for {year}")
    return calendar
