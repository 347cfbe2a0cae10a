"""Evaluate cron expressions of five fields, by the clocks of any time zone.

Fixed hours follow the wall clock: a time that a clock change skips moves with the change, and a repeated time fires
once, so that nothing is lost or done twice. Expressions for every hour follow elapsed time: a skipped hour does not
happen, and a repeated hour is two hours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from signalbox import calendars
from signalbox.errors import ScheduleRefused

DAY = timedelta(days=1)  # no clock was ever changed by more
_ANY_DAY = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Cron:
    """Describe one expression in one zone."""

    expression: str
    zone: ZoneInfo
    every_hour: bool

    @staticmethod
    def parse(expression: str, timezone: str) -> Cron:
        """Read the expression, or raise ScheduleRefused."""
        if len(expression.split()) != 5:
            raise ScheduleRefused(
                f"cron '{expression[:100]}' does not have five fields: minute hour day-of-month month day-of-week"
            )
        try:
            hours = CronSim(expression, _ANY_DAY).hours
        # Some nonsense ends in an assertion there, such as 1#2/3.
        except (CronSimError, ValueError, AssertionError, RecursionError) as error:
            raise ScheduleRefused(f"cron '{expression[:100]}' can't be read: {error}") from None
        return Cron(expression, zone_of(timezone), every_hour=len(hours) == 24)

    @property
    def in_words(self) -> str:
        return CronSim(self.expression, _ANY_DAY).explain()

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the first fire after the instant, or None where there is none within fifty years."""
        least = min(self._offsets(instant))
        best: datetime | None = None
        for wall in CronSim(self.expression, (instant + least).astimezone(UTC)):
            # Clock changes disturb the order: a later wall time may come first.
            if best is not None and wall - max(self._offsets(best)) >= best:
                break
            fires = [fire for fire in self._instants(wall) if fire > instant]
            best = min([*fires, *([best] if best else [])], default=None)
        return best

    def _offsets(self, instant: datetime) -> Iterator[timedelta]:
        """Return the offsets of the zone's clocks in the days around it."""
        for nearby in (instant - DAY, instant, instant + DAY):
            yield nearby.astimezone(self.zone).utcoffset() or timedelta(0)

    def _instants(self, wall: datetime) -> Iterator[datetime]:
        """Return when clocks show this wall time. The expression is evaluated on a clock that never changes, UTC's."""
        local = wall.replace(tzinfo=self.zone)
        first = local.astimezone(UTC)
        if not self.every_hour:
            yield first  # in a gap: the offset from before it moves the time by the gap
        elif first.astimezone(self.zone).replace(tzinfo=None) == wall.replace(tzinfo=None):
            yield first
            yield local.replace(fold=1).astimezone(UTC)


def zone_of(timezone: str) -> ZoneInfo:
    """Return the time zone of that name, or raise ScheduleRefused where there is none."""
    return calendars.zone_of(timezone, ScheduleRefused)
