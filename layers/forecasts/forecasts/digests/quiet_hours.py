"""Quiet hours: until when an organisation wants to hear nothing.

It is quiet while the clock on the organisation's wall reads a time between start and end. So quiet hours whose end a
clock change skips end with the change, and where an hour comes twice, both are quiet as the clock reads them.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from forecasts.digests.preferences import read_quiet_hours, zone_of

MINUTE = timedelta(minutes=1)


def resume_at(preferences: object, timezone: str, now: datetime) -> datetime:
    """The first instant from now on at which it is not quiet: now itself, or a whole minute.

    Looks at the clock minute by minute, a day at most, since no rule about offsets holds everywhere: some zones change
    at midnight, some by half an hour, and one has left out a day.
    """
    quiet = read_quiet_hours(preferences)
    if quiet is None:
        return now
    zone, moment = zone_of(timezone), now
    while quiet.cover(moment.astimezone(zone).time()):
        moment = moment.replace(second=0, microsecond=0) + MINUTE
    return moment
