"""How an exception looks in the ledger: its type, its message, and where in our code it came up."""

from __future__ import annotations

from traceback import extract_tb
from typing import Any

LONGEST_MESSAGE = 2000


def describe(error: BaseException) -> dict[str, Any]:
    """A value for a jsonb column; the message is cut where it would swell the row."""
    described: dict[str, Any] = {"type": type(error).__name__, "message": _clean(str(error))}
    frames = extract_tb(error.__traceback__)
    if frames:
        last = frames[-1]
        described["at"] = f"{last.filename.rsplit('/', 1)[-1]}:{last.lineno} in {last.name}"
    return described


def _clean(text: str) -> str:
    """What jsonb can hold: no NUL, no half of a surrogate pair."""
    return text[:LONGEST_MESSAGE].replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")
