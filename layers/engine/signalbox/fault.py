"""How an exception looks in the ledger: its type, its message, and where in our code it came up."""

from __future__ import annotations

from traceback import extract_tb
from typing import Any

from signalbox.storable import clean

LONGEST_MESSAGE = 2000


def describe(error: BaseException) -> dict[str, Any]:
    """A value for a jsonb column; the message is cut where it would swell the row."""
    described: dict[str, Any] = {"type": type(error).__name__, "message": clean(_words_of(error)[:LONGEST_MESSAGE])}
    frames = extract_tb(error.__traceback__)
    if frames:
        last = frames[-1]
        described["at"] = f"{last.filename.rsplit('/', 1)[-1]}:{last.lineno} in {last.name}"
    return described


def _words_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as fault:  # of the error's own code, which must not take away what else is known
        return f"(what it says can't be read: {type(fault).__name__})"
