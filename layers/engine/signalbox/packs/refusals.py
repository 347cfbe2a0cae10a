"""Refuse a job for good by a code, which outsiders know: SNAPSHOT_NOT_READY is the error class SnapshotNotReady."""

from __future__ import annotations

from functools import cache

from signalbox.packs.outcome import Permanent


def refuse(code: str, why: str) -> Permanent:
    """Return the error to raise; its message begins with the code."""
    return class_of(code)(f"{code}: {why}")


@cache
def class_of(code: str) -> type[Permanent]:
    """Return the error class of a code."""
    return type("".join(word.capitalize() for word in code.split("_")), (Permanent,), {})
