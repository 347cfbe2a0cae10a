"""Page through many rows in short transactions, past the rows that a task leaves as they are.

The next page begins after the last row of the page before, by the order of an index. So a row that can't be worked on
is met once, and index entries that earlier pages have left dead are not read again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Generic, TypeVar

from signalbox.budget import Budget
from signalbox.ledger.context import Done

Key = TypeVar("Key")

LEAST, MOST = 100, 1000
# A page holds its locks while its messages are sent, and no lock may be held for half a second. So a page grows while
# it is quick and shrinks once it is slow.
QUICK_SECONDS, SLOW_SECONDS = 0.1, 0.25


@dataclass(frozen=True, slots=True)
class Page(Generic[Key]):
    """Describe what one transaction found and did."""

    found: int  # fewer than were asked for: this is the last page
    done: int
    last: Key  # where the next page begins


def walk(budget: Budget, start: Key, turn: Callable[[Key, int], Page[Key]]) -> Done:
    """Process page after page, each after the last row of the one before, until the rows or the budget end."""
    items, after, size = 0, start, LEAST
    while not budget.spent:
        began = monotonic()
        page = turn(after, size)
        items += page.done
        if page.found < size:
            return Done(items)
        after, size = page.last, next_size(size, monotonic() - began)
    return Done(items, more=True)


def next_size(size: int, seconds: float) -> int:
    """Return how many rows the next page takes, after one of this size that took this long."""
    if seconds > SLOW_SECONDS:
        return max(LEAST, size // 2)
    if seconds < QUICK_SECONDS:
        return min(MOST, size * 2)
    return size
