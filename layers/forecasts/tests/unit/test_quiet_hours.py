"""Quiet hours hold on the days on which clocks change."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from forecasts.digests.quiet_hours import resume_at
from forecasts.errors import PreferencesRefused


def quiet(start: str, end: str) -> dict[str, Any]:
    return {"quiet_hours": {"start": start, "end": end}}


@pytest.mark.parametrize(
    ("zone", "start", "end", "now", "then"),
    [
        # An ordinary night in Berlin, an hour ahead of UTC.
        ("Europe/Berlin", "22:00", "07:00", "2026-03-10 20:59:59", "2026-03-10 20:59:59"),
        ("Europe/Berlin", "22:00", "07:00", "2026-03-10 21:00:00", "2026-03-11 06:00"),
        ("Europe/Berlin", "22:00", "07:00", "2026-03-11 05:59:59", "2026-03-11 06:00"),
        ("Europe/Berlin", "22:00", "07:00", "2026-03-11 06:00:00", "2026-03-11 06:00"),
        # Within one day, and none at all.
        ("Europe/Berlin", "12:00", "13:00", "2026-03-10 11:30:10", "2026-03-10 12:00"),
        ("Europe/Berlin", "12:00", "12:00", "2026-03-10 11:00:00", "2026-03-10 11:00"),
        # The end is skipped: clocks go from 2:00 to 3:00 at 1:00 UTC.
        ("Europe/Berlin", "22:00", "02:30", "2026-03-28 23:00:00", "2026-03-29 01:00"),
        # The start is skipped: quiet from 3:00 on.
        ("Europe/Berlin", "02:30", "06:00", "2026-03-29 00:59:59", "2026-03-29 00:59:59"),
        ("Europe/Berlin", "02:30", "06:00", "2026-03-29 01:00:00", "2026-03-29 04:00"),
        # All of it is skipped.
        ("Europe/Berlin", "02:15", "02:45", "2026-03-29 01:00:00", "2026-03-29 01:00"),
        # The night is an hour shorter, and an hour longer.
        ("Europe/Berlin", "22:00", "07:00", "2026-03-28 22:00:00", "2026-03-29 05:00"),
        ("Europe/Berlin", "22:00", "07:00", "2026-10-24 22:00:00", "2026-10-25 06:00"),
        # 2:30 comes twice, at 0:30 and 1:30 UTC: quiet ends at the first, and returns while the clock reads so again.
        ("Europe/Berlin", "22:00", "02:30", "2026-10-24 22:00:00", "2026-10-25 00:30"),
        ("Europe/Berlin", "22:00", "02:30", "2026-10-25 01:10:00", "2026-10-25 01:30"),
        # Half an hour on Lord Howe; a gap at midnight in Cairo; and Samoa's 30th of December 2011, which never came.
        ("Australia/Lord_Howe", "22:00", "02:15", "2026-10-03 14:00:00", "2026-10-03 15:30"),
        ("Africa/Cairo", "20:00", "00:30", "2026-04-23 20:00:00", "2026-04-23 22:00"),
        ("Pacific/Apia", "22:00", "07:00", "2011-12-30 09:30:00", "2011-12-30 17:00"),
    ],
)
def test_quiet_hours_end(zone: str, start: str, end: str, now: str, then: str) -> None:
    found = resume_at(quiet(start, end), zone, datetime.fromisoformat(now + "+00:00"))
    assert found == datetime.fromisoformat(then + "+00:00")


NOW = datetime.fromisoformat("2026-03-10T12:00:00+00:00")


@pytest.mark.parametrize("preferences", [{}, {"quiet_hours": None}, {"digest": {"enabled": True}}])
def test_without_quiet_hours_it_is_never_quiet(preferences: dict[str, Any]) -> None:
    assert resume_at(preferences, "Mars/Olympus", NOW) == NOW


@pytest.mark.parametrize(
    ("preferences", "zone", "words"),
    [
        (quiet("00:00", "23:59"), "Mars/Olympus", "'Mars/Olympus' is no IANA time zone"),
        (quiet("00:00", "23:59"), "America", "'America' is no IANA time zone"),
        (quiet("22", "07:00"), "UTC", "quiet_hours.start: .*such as 07:30"),
        ({"quiet_hours": {"start": "22:00"}}, "UTC", "quiet_hours.end: Field required"),
        ({"quiet_hours": "always"}, "UTC", "'quiet_hours' is not a JSON object"),
        (["quiet_hours"], "UTC", "preferences are not a JSON object"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(preferences: Any, zone: str, words: str) -> None:
    with pytest.raises(PreferencesRefused, match=words):
        resume_at(preferences, zone, NOW)
