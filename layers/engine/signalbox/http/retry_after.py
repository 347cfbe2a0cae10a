"""Read the header Retry-After: a number of seconds, or a date."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST = 86_400 * 366


def seconds_to_wait(given: str | None) -> float | None:
    """Return how long the other side asks to be left alone, or None where it does not say."""
    if given is None:
        return None
    if given.isascii() and given.isdigit():
        return float(min(int(given[:9]), LONGEST))
    try:
        seconds = (parsedate_to_datetime(given).astimezone(UTC) - datetime.now(UTC)).total_seconds()
        return min(max(0.0, seconds), LONGEST)
    except (ValueError, OverflowError):  # a year that no calendar has
        return None
