"""Read and show times as people type them. Pure: the clock comes in as a value.

A time without a zone is refused, since it would mean another slot on another machine. Times are shown in a form that
can be typed: 2026-01-31T06:00Z.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_SPAN = re.compile(
    r"(?=\d)(?:(?P<weeks>\d+)w)?(?:(?P<days>\d+)d)?(?:(?P<hours>\d+)h)?(?:(?P<minutes>\d+)m)?(?:(?P<seconds>\d+)s)?"
)
_FORMS = "such as 2026-01-31T06:00:00Z, now, or how long ago: 10m, 2h, 3d"


class TimeRefused(ValueError):
    """The text is no time, or means different times in different places."""


def read_instant(text: str, clock: datetime) -> datetime:
    """Read an instant in UTC."""
    span = timedelta(0) if text == "now" else read_span(text)
    try:
        return _absolute(text) if span is None else clock.replace(microsecond=0) - span
    except OverflowError:
        raise TimeRefused(f"'{text}' is beyond all calendars") from None


def read_span(text: str) -> timedelta | None:
    """Read a length of time such as 90s, 2h or 1d12h; return None for anything else."""
    found = _SPAN.fullmatch(text)
    try:
        return timedelta(**{unit: int(count) for unit, count in found.groupdict("0").items()}) if found else None
    except (OverflowError, ValueError):
        raise TimeRefused(f"'{text[:40]}' is longer than all time") from None


def _absolute(text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise TimeRefused(f"'{text}' is not a time, {_FORMS}") from None
    if instant.tzinfo is None:
        raise TimeRefused(f"'{text}' has no time zone; in UTC it is {instant.isoformat()}Z")
    return instant.astimezone(UTC)


def show_instant(instant: datetime | str) -> str:
    """Return the instant as short as is exact, in a form that can be typed again."""
    moment = datetime.fromisoformat(instant) if isinstance(instant, str) else instant
    moment = moment.astimezone(UTC)
    if moment.microsecond:
        return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ" if moment.second else "%Y-%m-%dT%H:%MZ")


def show_duration(milliseconds: float) -> str:
    """Return two units at most."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    return show_span(timedelta(seconds=round(seconds)))


def show_span(span: timedelta) -> str:
    """Return the two largest of days, hours, minutes and seconds."""
    rest = int(span.total_seconds())
    parts: list[tuple[int, str]] = []
    for name, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, rest = divmod(rest, size)
        if count or parts:
            parts.append((count, name))
    return " ".join(f"{count} {name}" for count, name in parts[:2] if count) or "0 s"


def show_age(instant: datetime | str, clock: datetime) -> str:
    """Return roughly how long ago it was."""
    moment = datetime.fromisoformat(instant) if isinstance(instant, str) else instant
    seconds = (clock - moment).total_seconds()
    if seconds < 1:
        return "now"
    for name, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size * 2 or (name == "min" and seconds >= 60):
            return f"{int(seconds // size)} {name} ago"
    return f"{int(seconds)} s ago"
