"""Write JSON canonically (RFC 8785), and read the texts of others strictly.

What is hashed and signed are these bytes. Every number is a double, as the RFC has it.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from datetime import UTC, datetime
from typing import Any

MOST_INTEGER = 2**53 - 1
_SURROGATE = re.compile("[\ud800-\udfff]")


class JsonRefused(ValueError):
    """The text is no JSON that everybody would read alike."""


def canonical(value: Any) -> bytes:
    """Return the canonical bytes of a JSON value."""
    import rfc8785

    return rfc8785.dumps(_doubles(value))


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def instant(moment: datetime) -> str:
    """Return an instant as all of our JSON has it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def read_json(data: bytes | str) -> Any:
    """Return the value of a text from outside; refuse what two readers might understand differently."""
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        value = json.loads(
            text, object_pairs_hook=_object, parse_int=_integer, parse_float=_double, parse_constant=_constant
        )
    except (ValueError, RecursionError) as error:
        raise JsonRefused(str(error)) from None
    if fault := _fault_of_texts(value):
        raise JsonRefused(fault)
    return value


def read_own(data: bytes) -> Any:
    """Return the value of bytes that `canonical` has made."""
    return json.loads(data)


def _doubles(value: Any) -> Any:
    """Return the value with integers that are no safe ones as the doubles that they stand for."""
    if isinstance(value, dict):
        return {name: _doubles(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_doubles(one) for one in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > MOST_INTEGER:
        return float(value)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise JsonRefused("a name stands twice in an object")
    return found


def _integer(digits: str) -> int:
    value = int(digits) if len(digits) < 20 else MOST_INTEGER + 1
    if abs(value) > MOST_INTEGER:
        raise JsonRefused("an integer is beyond 2^53 - 1")
    return value


def _double(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise JsonRefused("a number is beyond doubles")
    return value


def _constant(name: str) -> float:
    raise JsonRefused(f"{name} is no number of JSON")


def _fault_of_texts(value: Any) -> str | None:
    """Say what is wrong with a text anywhere in the value. It is not recursive: a value may be deep."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            left += [*one.keys(), *one.values()]
        elif isinstance(one, list):
            left += one
        elif isinstance(one, str) and (fault := _fault_of_text(one)):
            return fault
    return None


def _fault_of_text(text: str) -> str | None:
    if "\0" in text:
        return "a text holds NUL"
    return "a text holds half a surrogate pair" if not text.isascii() and _SURROGATE.search(text) else None
