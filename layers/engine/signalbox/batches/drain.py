"""Repeat a step until there is nothing left, or no time."""

from __future__ import annotations

from collections.abc import Callable

from signalbox.budget import Budget
from signalbox.ledger.context import Done


def drain(budget: Budget, step: Callable[[], int], *, size: int) -> Done:
    """Repeat a step that works on at most `size` items and commits, until it finds fewer or the budget is spent."""
    items = 0
    while not budget.spent:
        found = step()
        items += found
        if found < size:
            return Done(items)
    return Done(items, more=True)
