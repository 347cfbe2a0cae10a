"""The numbers that the model is made of, each with its source: prices, what was measured, what is assumed.

Data beside this module, so that a new price is a change of a line. Figures are asked for by name; a test holds that
none of them is idle.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Price:
    """So many dollars for so many units, of which some a month may be free."""

    name: str
    usd: float
    per: float
    unit: str
    free: float
    source: str

    def of(self, quantity: float) -> float:
        return quantity * self.usd / self.per


@dataclass(frozen=True, slots=True)
class PriceList:
    """Of one region at one time."""

    as_of: str
    region: str
    prices: Mapping[str, Price]


@cache
def price_list() -> PriceList:
    read = _read("prices")
    prices = {name: Price(name, **fields) for name, fields in read["prices"].items()}
    return PriceList(read["as_of"], read["region"], prices)


@cache
def figures() -> Mapping[str, float]:
    """What was measured and what is assumed, by name."""
    return {name: float(one["value"]) for name, one in (measured() | assumed()).items()}


@cache
def measured() -> dict[str, dict[str, Any]]:
    return _read("measured")


@cache
def assumed() -> dict[str, dict[str, Any]]:
    return _read("assumed")


def _read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((_HERE / f"{name}.json").read_text("utf-8"))
    return found
