"""Cron expressions of five fields, by the clocks of any time zone.

An expression that names hours is meant by the calendar, as people read it: a time that a clock change skips is moved by
as much as the clock, and one that comes twice counts the first time only, so that nothing is lost or done twice. One
for every hour goes by time as it passes: what is skipped does not happen, and an hour that comes twice is two hours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from signalbox.errors import ScheduleRefused

DAY = timedelta(days=1)  # as much as any clock was ever changed
_ANY_DAY = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Cron:
    """One expression in one zone."""

    expression: str
    zone: ZoneInfo
    every_hour: bool

    @staticmethod
    def parse(expression: str, timezone: str) -> Cron:
        """Raises ScheduleRefused for what can't be read."""
        if len(expression.split()) != 5:
            raise ScheduleRefused(
                f"cron '{expression[:100]}' has not five fields: minute hour day-of-month month day-of-week"
            )
        try:
            hours = CronSim(expression, _ANY_DAY).hours
        # An assertion is what some nonsense ends in there, such as 1#2/3.
        except (CronSimError, ValueError, AssertionError, RecursionError) as error:
            raise ScheduleRefused(f"cron '{expression[:100]}' can't be read: {error}") from None
        return Cron(expression, zone_of(timezone), every_hour=len(hours) == 24)

    def next_after(self, instant: datetime) -> datetime | None:
        """The first fire after the instant; none where there is none within fifty years."""
        least = min(self._offsets(instant))
        best: datetime | None = None
        for wall in CronSim(self.expression, (instant + least).astimezone(UTC)):
            # Clocks that are changed disturb the order: what comes later on the wall may come first.
            if best is not None and wall - max(self._offsets(best)) >= best:
                break
            fires = [fire for fire in self._instants(wall) if fire > instant]
            best = min([*fires, *([best] if best else [])], default=None)
        return best

    def _offsets(self, instant: datetime) -> Iterator[timedelta]:
        """Those that clocks have in the days around it."""
        for nearby in (instant - DAY, instant, instant + DAY):
            yield nearby.astimezone(self.zone).utcoffset() or timedelta(0)

    def _instants(self, wall: datetime) -> Iterator[datetime]:
        """When clocks show this time. The expression is run through on a clock that is never changed, UTC's."""
        local = wall.replace(tzinfo=self.zone)
        first = local.astimezone(UTC)
        if not self.every_hour:
            yield first  # in a gap by the offset from before it, which moves the time by the gap
        elif first.astimezone(self.zone).replace(tzinfo=None) == wall.replace(tzinfo=None):
            yield first
            yield local.replace(fold=1).astimezone(UTC)


def zone_of(timezone: str) -> ZoneInfo:
    """The time zone of that name; raises ScheduleRefused where there is none."""
    try:
        return ZoneInfo(timezone)
    except (KeyError, ValueError, OSError):
        raise ScheduleRefused(
            f"time zone '{timezone[:60]}' is not known; one is 'Europe/Berlin', another 'UTC'"
        ) from None
