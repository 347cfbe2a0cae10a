"""Apply operators to operands that have been evaluated. Numbers are doubles, and arithmetic goes left to right."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Literal

MOST_TEXT = 65_536  # code points
MOST_ELEMENTS = 10_000  # of a list
Kind = Literal["TYPE_ERROR", "DIVISION_BY_ZERO", "NOT_FINITE", "LIMIT"]
_TYPES: dict[type, str] = {
    type(None): "null",
    bool: "boolean",
    int: "number",
    float: "number",
    str: "text",
    list: "list",
    dict: "object",
}


class Fault(Exception):
    """An expression has no value."""

    def __init__(self, kind: Kind, why: str) -> None:
        super().__init__(why)
        self.kind = kind


def type_of(value: Any) -> str:
    """Return the name of the type that a value has in rules."""
    return _TYPES[type(value)]


def check_type(value: Any, wanted: str) -> Any:
    """Return a value of the wanted type, or raise TYPE_ERROR."""
    if _TYPES[type(value)] != wanted:
        raise Fault("TYPE_ERROR", f"a {wanted} is wanted, not a {type_of(value)}")
    return value


def check_limits(value: Any) -> Any:
    """Return a value that is no longer than a value may be, or raise LIMIT."""
    if isinstance(value, str) and len(value) > MOST_TEXT:
        raise Fault("LIMIT", f"a text has more than {MOST_TEXT:,} code points")
    if isinstance(value, list) and len(value) > MOST_ELEMENTS:
        raise Fault("LIMIT", f"a list has more than {MOST_ELEMENTS:,} elements")
    return value


def number(value: Any) -> float:
    return float(check_type(value, "number"))


def total(values: Sequence[Any]) -> float:
    """Add numbers as doubles from left to right, uncompensated, which sum() is not in every Python."""
    return _finite(reduce(operator.add, map(number, values), 0.0))


def round_to(value: Any, digits: Any) -> float:
    """Round the exact double, ties to even."""
    return _finite(round(number(value), int(digits)))


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise Fault("NOT_FINITE", "the result is beyond doubles")
    return value


def _multiply(values: Sequence[Any]) -> float:
    return _finite(reduce(operator.mul, map(number, values)))


def _subtract(values: Sequence[Any]) -> float:
    left, right = map(number, values)
    return _finite(left - right)


def _divide(values: Sequence[Any]) -> float:
    left, right = map(number, values)
    if right == 0:
        raise Fault("DIVISION_BY_ZERO", "the divisor is 0")
    return _finite(left / right)


def _concat(values: Sequence[Any]) -> str:
    """Join texts; what would be too long is not made."""
    if sum(len(check_type(value, "text")) for value in values) > MOST_TEXT:
        raise Fault("LIMIT", f"a text has more than {MOST_TEXT:,} code points")
    return "".join(values)


def _compare(by: Callable[[Any, Any], bool]) -> Callable[[Sequence[Any]], bool]:
    """Return the comparison of two numbers, or of two texts by code point."""

    def compare(values: Sequence[Any]) -> bool:
        left, right = values
        if isinstance(left, str):
            return by(left, check_type(right, "text"))
        return by(number(left), number(right))

    return compare


APPLY: dict[str, Callable[[Sequence[Any]], Any]] = {
    "not": lambda values: not check_type(values[0], "boolean"),
    "abs": lambda values: abs(number(values[0])),
    "count": lambda values: len(check_type(values[0], "list")),
    "length": lambda values: len(check_type(values[0], "text")),
    "lt": _compare(operator.lt),
    "le": _compare(operator.le),
    "gt": _compare(operator.gt),
    "ge": _compare(operator.ge),
    "sub": _subtract,
    "div": _divide,
    "add": total,
    "mul": _multiply,
    "min": lambda values: min(list(map(number, values))),
    "max": lambda values: max(list(map(number, values))),
    "list": list,
    "concat": _concat,
}
