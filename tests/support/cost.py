"""Loads on the template, for tests of what they cost."""

from __future__ import annotations

from typing import Any

from local.cost.bill import Bill
from local.cost.load import Load
from local.cost.model import bill
from local.cost.stack import Stack, read_stack
from tests.support.template import ROOT

TEMPLATE = ROOT / "template.yaml"


def stack(**parameters: str) -> Stack:
    return read_stack(TEMPLATE, parameters)


def billed(jobs_a_day: float, of: Stack | None = None, **load: Any) -> Bill:
    return bill(of or stack(), Load(jobs_a_day, **load))


def spent_on(found: Bill, what: str) -> float:
    """Of the items whose group or name has these words."""
    return sum(one.usd for one in found.items if what in f"{one.group} {one.what}")
