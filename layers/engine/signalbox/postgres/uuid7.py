"""Make ids of jobs: UUIDs of version 7, so that new jobs lie together in the index, and ids sort by time."""

from __future__ import annotations

import time
from datetime import datetime
from os import urandom
from uuid import UUID

_NANOSECONDS = 1_000_000  # in a millisecond
_VARIANTS = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


def new_ids(number: int) -> list[str]:
    """Return this many ids, each later than the one before: twelve bits after the millisecond hold its parts."""
    noise = urandom(8 * number).hex()
    ids = []
    last, when = -1, ""
    for place in range(0, 16 * number, 16):
        milliseconds, rest = divmod(time.time_ns(), _NANOSECONDS)
        if milliseconds != last:
            last, when = milliseconds, f"{milliseconds >> 16:08x}-{milliseconds & 0xFFFF:04x}-7"
        ids.append(
            f"{when}{rest * 4096 // _NANOSECONDS:03x}-{_VARIANTS[noise[place]]}{noise[place + 1 : place + 4]}"
            f"-{noise[place + 4 : place + 16]}"
        )
    return ids


def first_id(since: datetime) -> str:
    """Return the smallest id that can have been made since then."""
    return str(UUID(int=max(0, int(since.timestamp() * 1000)) << 80))
