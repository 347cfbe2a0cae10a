"""How an exception looks in the ledger: its type, its message, and where in our code it came up."""

from __future__ import annotations

from traceback import extract_tb
from typing import Any

LONGEST_MESSAGE = 2000


def describe(error: BaseException) -> dict[str, Any]:
    """A value for a jsonb column; the message is cut where it would swell the row."""
    described: dict[str, Any] = {"type": type(error).__name__, "message": str(error)[:LONGEST_MESSAGE]}
    frames = extract_tb(error.__traceback__)
    if frames:
        last = frames[-1]
        described["at"] = f"{last.filename.rsplit('/', 1)[-1]}:{last.lineno} in {last.name}"
    return described
