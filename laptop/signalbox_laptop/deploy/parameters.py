"""Check a template's parameters as CloudFormation does before it makes anything. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from signalbox.packs.suggest import nearest

Declared = Mapping[str, Mapping[str, Any]]


def faults_of(declared: Declared, given: Mapping[str, str]) -> list[str]:
    """Return a sentence for each value that its parameter refuses, and for each unknown parameter."""
    return [fault for name, value in given.items() for fault in _faults(declared, name, value)]


def _faults(declared: Declared, name: str, value: str) -> Iterator[str]:
    if name not in declared:
        yield f"the template has no parameter {name}{nearest(name, declared, 'its Parameters list them')}"
        return
    one = declared[name]
    many = one["Type"] == "CommaDelimitedList" or one["Type"].startswith("List<")
    for part in value.split(",") if many else [value]:
        if takes := _unmet(one, part.strip() if many else part):
            yield f"parameter {name} can't be '{part}': it {takes}"


def _unmet(one: Mapping[str, Any], value: str) -> str | None:
    """Return what the parameter takes, if this value is not that."""
    allowed = [str(choice) for choice in one.get("AllowedValues", [])]
    if allowed and value not in allowed:
        return f"takes one of {', '.join(allowed)}"
    if one["Type"] in ("Number", "List<Number>") and not _between(value, one.get("MinValue"), one.get("MaxValue")):
        return " ".join(["takes a number", *(f"{word} {one[key]}" for word, key in _BOUNDS if key in one)])
    if "AllowedPattern" in one and not re.fullmatch(one["AllowedPattern"], value):
        return str(one.get("ConstraintDescription") or f"takes what matches {one['AllowedPattern']}")
    return None


_BOUNDS = (("from", "MinValue"), ("to", "MaxValue"))


def _between(value: str, least: float | None, most: float | None) -> bool:
    try:
        number = float(value)
    except ValueError:
        return False
    return number == number and (least is None or number >= least) and (most is None or number <= most)  # noqa: PLR0124
