"""Read what calibration returns, coefficients by name for a tile, and how far they are from the previous ones.

A worker applies changes below the bound itself, and files the others as candidates for a person to review. Numbers are
compared as they are written: in binary, 1.15 is less than 15 % from 1.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum

LARGEST = Decimal(sys.float_info.max)
INFINITE = Decimal("Infinity")

Coefficients = Mapping[str, Decimal]


class CalibrationVerdict(StrEnum):
    """Name our verdict on a candidate."""

    WAITS = "waits"  # needs a person: its change is large, or there is nothing to compare it with
    MISFILED = "misfiled"  # its change is small: the worker should have applied it
    INVALID = "invalid"  # has no coefficients at all


def read_coefficients(text: str) -> Coefficients | None:
    """Return a flat object of finite numbers, at least one; None for anything else."""
    try:
        given = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    except RecursionError:  # Postgres nests deeper than Python
        return None
    if not isinstance(given, dict) or not given:
        return None
    if not all(isinstance(value, Decimal) and abs(value) <= LARGEST for value in given.values()):
        return None
    return given


def largest_change(before: Coefficients, after: Coefficients) -> Decimal:
    """Return the largest relative change of any coefficient; infinite if one appears, disappears or leaves zero."""
    if before.keys() != after.keys():
        return INFINITE
    return max(_change(value, after[name]) for name, value in before.items())


def judge(proposed: Coefficients | None, change: Decimal | None, bound: Decimal) -> CalibrationVerdict:
    """Judge a candidate. `change` is None if the tile has no valid coefficients yet; at the bound is beyond it."""
    if proposed is None:
        return CalibrationVerdict.INVALID
    return CalibrationVerdict.MISFILED if change is not None and change < bound else CalibrationVerdict.WAITS


def _change(before: Decimal, after: Decimal) -> Decimal:
    if before == after:
        return Decimal(0)
    return abs(after - before) / abs(before) if before else INFINITE
