"""Decide until when an organisation wants to hear nothing.

It is quiet while the organisation's local clock reads a time between start and end. So quiet hours whose end a clock
change skips end with the change, and a repeated hour is quiet both times, as the clock reads it.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from forecasts.digests.preferences import read_quiet_hours, zone_of

MINUTE = timedelta(minutes=1)


def resume_at(preferences: object, timezone: str, now: datetime) -> datetime:
    """Return the first instant from now on at which it is not quiet: now itself, or a whole minute.

    It checks the clock minute by minute, for a day at most, since no rule about offsets holds everywhere: some zones
    change at midnight, some by half an hour, and one has left out a day.
    """
    quiet = read_quiet_hours(preferences)
    if quiet is None:
        return now
    zone, moment = zone_of(timezone), now
    while quiet.cover(moment.astimezone(zone).time()):
        moment = moment.replace(second=0, microsecond=0) + MINUTE
    return moment
