"""Read an organisation's wishes from the column notification_preferences, and the time zone that they are meant in.

Users' programs write them, so they are validated: what can't be read is refused for its organisation alone.
"""

from __future__ import annotations

import re
from datetime import time
from typing import Annotated, Any, Literal, Self, TypeVar
from zoneinfo import ZoneInfo

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from forecasts.errors import PreferencesRefused

_HH_MM = re.compile(r"([01]\d|2[0-3]):([0-5]\d)", re.ASCII)


def _clock_time(value: object) -> time:
    if isinstance(value, time):
        return value
    if not isinstance(value, str) or not (found := _HH_MM.fullmatch(value)):
        raise ValueError("must be a time of the clock such as 07:30")
    return time(int(found[1]), int(found[2]))


ClockTime = Annotated[time, BeforeValidator(_clock_time)]


class _Wish(BaseModel):
    # Fields that we do not know belong to other programs.
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


class DigestWish(_Wish):
    """Say when an organisation wants its digest."""

    enabled: bool
    schedule: Literal["daily", "weekly"] | None = None
    time: ClockTime | None = None
    weekday: int | None = Field(None, ge=0, le=6)  # Monday is 0

    @property
    def missing(self) -> list[str]:
        """Return the missing fields without which no digest can be planned."""
        needed = ["schedule", "time"] + (["weekday"] if self.schedule == "weekly" else [])
        return [name for name in needed if getattr(self, name) is None]

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if self.enabled and self.missing:
            raise ValueError(f"an enabled digest needs {' and '.join(self.missing)}")
        return self


class QuietHours(_Wish):
    """Cover the time from start up to end, over midnight if end is earlier."""

    start: ClockTime
    end: ClockTime

    def cover(self, clock: time) -> bool:
        if self.start <= self.end:
            return self.start <= clock < self.end
        return clock >= self.start or clock < self.end


def read_digest(preferences: object) -> DigestWish:
    """Return the digest wished for, or raise an error that says what is wrong with it."""
    return _read(DigestWish, _part(preferences, "digest"), "digest")


def read_quiet_hours(preferences: object) -> QuietHours | None:
    """Return the quiet hours, or None if none were set."""
    part = _part(preferences, "quiet_hours")
    return None if part is None else _read(QuietHours, part, "quiet_hours")


def zone_of(name: str) -> ZoneInfo:
    """Return the IANA time zone of that name."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        # OSError: the name is a folder of the time zone database, such as 'America'.
        raise PreferencesRefused(f"'{name[:40]}' is no IANA time zone, such as Europe/Berlin") from None


Wish = TypeVar("Wish", bound=_Wish)


def _part(preferences: object, name: str) -> Any:
    if not isinstance(preferences, dict):
        raise PreferencesRefused("the preferences are not a JSON object")
    return preferences.get(name)


def _read(model: type[Wish], part: object, name: str) -> Wish:
    if not isinstance(part, dict):
        raise PreferencesRefused(f"preference '{name}' is not a JSON object")
    try:
        return model.model_validate(part)
    except ValidationError as error:
        faults = "; ".join(".".join([name, *map(str, fault["loc"])]) + ": " + fault["msg"] for fault in error.errors())
        raise PreferencesRefused(f"preferences can't be read: {faults}") from None
