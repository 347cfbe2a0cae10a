"""Decide when a task is due: EventBridge's cron() and rate() expressions, and the slot that an instant belongs to.

All of it is pure and in UTC, as EventBridge's rules are, so that no clock change moves a slot. The laptop's clock, the
reconciler and the ledger all use this module, so they can't disagree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

from signalbox.errors import ScheduleRefused

_UNITS = {"minute": 60, "hour": 3600, "day": 86400}
# As in EventBridge: 1 takes the singular, more take the plural, and 0 is refused.
_RATE = re.compile(r"rate\((1(?= \w+[^s]\))|(?!1 )[1-9]\d{0,8}(?= \w+s\))) (minute|hour|day)s?\)")
_BEAT = re.compile(r"cron\((\*|\d{1,2})(?:/(\d{1,2}))? (\*|\d{1,2}) \* \* \? \*\)")
_CRON = re.compile(r"cron\((.+)\)")
_WEEKDAYS = re.compile(r"\d+")
# Eight years hold every leap day; an expression without a fire for longer never fires again.
_SEARCH_YEARS = 8


@dataclass(frozen=True, slots=True)
class Schedule:
    """Hold one expression, as EventBridge takes it."""

    expression: str

    @staticmethod
    def parse(expression: str) -> Schedule:
        """Return the schedule, or raise if the expression can't be read."""
        if _beat(expression) is None:
            _translate(expression)
        return Schedule(expression)

    def slot_of(self, instant: datetime) -> datetime:
        """Return the latest fire at or before the instant."""
        _require_aware(instant)
        if beat := _beat(self.expression):
            return _floor(instant, *beat)
        whole_minute = _floor(instant, 60)
        return self._step(whole_minute + timedelta(minutes=1), reverse=True)

    def next_after(self, instant: datetime) -> datetime:
        """Return the first fire after the instant."""
        _require_aware(instant)
        if beat := _beat(self.expression):
            return _floor(instant, *beat) + timedelta(seconds=beat[0])
        return self._step(instant.astimezone(UTC), reverse=False)

    def between(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Return every fire after the one instant, up to and including the other, in order."""
        _require_aware(after)
        if beat := _beat(self.expression):
            fire, step = _floor(after, *beat), timedelta(seconds=beat[0])
            while (fire := fire + step) <= until:
                yield fire
            return
        fire = after
        with suppress(ScheduleRefused):  # an expression that names years ends with them
            while (fire := self.next_after(fire)) <= until:
                yield fire

    def _step(self, instant: datetime, *, reverse: bool) -> datetime:
        expression, years = _translate(self.expression)
        from cronsim import CronSim

        limit = timedelta(days=366 * _SEARCH_YEARS)
        for fire in CronSim(expression, instant, reverse=reverse):
            if abs(fire - instant) > limit:
                break
            if years is None or fire.year in years:
                return fire
        direction = "before" if reverse else "after"
        raise ScheduleRefused(
            f"schedule '{self.expression}' has no fire within {_SEARCH_YEARS} years {direction} {instant.isoformat()}"
        )


def _require_aware(instant: datetime) -> None:
    if instant.tzinfo is None:
        raise ScheduleRefused(f"instant {instant.isoformat()} has no time zone; give one, such as a trailing Z")


def _floor(instant: datetime, period: int, offset: int = 0) -> datetime:
    whole = (int(instant.timestamp() // 1) - offset) // period * period + offset
    return datetime.fromtimestamp(whole, UTC)


@cache
def _beat(expression: str) -> tuple[int, int] | None:
    """Return period and offset in seconds, where the expression divides the UTC day evenly.

    Most tasks run each minute, quarter hour, hour or day. For these a floor division is enough, and a cold start need
    not load the cron library.
    """
    if rate := _RATE.fullmatch(expression):
        return int(rate[1]) * _UNITS[rate[2]], 0
    beat = _BEAT.fullmatch(expression)
    if beat is None:
        return None
    minute, step, hour = (None if text in (None, "*") else int(text) for text in beat.groups())
    if minute is not None and (minute > 59 or (hour or 0) > 23):
        return None
    if minute is None:
        return (60, 0) if step is hour is None else None
    if step is None:
        return (3600, minute * 60) if hour is None else (86400, hour * 3600 + minute * 60)
    even = hour is None and step and 60 % step == 0 and minute < step
    return (step * 60, minute * 60) if even else None


@cache
def _translate(expression: str) -> tuple[str, frozenset[int] | None]:
    """Return the five fields as the cron library reads them, and the years that the sixth field names, if any."""
    from cronsim import CronSim, CronSimError

    found = _CRON.fullmatch(expression)
    fields = found[1].split() if found else []
    if len(fields) != 6:
        raise ScheduleRefused(
            f"schedule '{expression}' is neither rate(N minutes|hours|days) nor cron() with six fields: "
            "minutes hours day-of-month month day-of-week year"
        )
    minute, hour, day, month, weekday, year = fields
    if (day == "?") == (weekday == "?"):
        raise ScheduleRefused(f"schedule '{expression}' must have ? as day-of-month or as day-of-week, and not as both")
    try:
        cron = " ".join([minute, hour, day.replace("?", "*"), month, _weekday(weekday)])
        CronSim(cron, datetime(2024, 1, 1, tzinfo=UTC))
        return cron, _years(year)
    except (CronSimError, ValueError) as error:
        raise ScheduleRefused(f"schedule '{expression}' can't be read: {error}") from None


def _weekday(field: str) -> str:
    """Return the field as cron reads it: Sunday is 0, in EventBridge 1. After # and / come counts, not days."""
    if field in ("?", "*"):
        return "*"
    if field == "L":
        return "6"  # the last day of the week, Saturday
    parts = re.split(r"([,#/])", field)
    shifted = [
        part if index and parts[index - 1] in "#/" else _WEEKDAYS.sub(_shift, part) for index, part in enumerate(parts)
    ]
    return "".join(shifted)


def _shift(day: re.Match[str]) -> str:
    if not 1 <= int(day[0]) <= 7:
        raise ValueError("days of the week are 1 (Sunday) to 7, or SUN to SAT")
    return str(int(day[0]) - 1)


def _years(field: str) -> frozenset[int] | None:
    if field == "*":
        return None
    years: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        end = int(last or (2199 if step else first))
        years.update(range(int(first), end + 1, int(step or 1)))
    return frozenset(years)
