"""Pages follow each other and adapt their size."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from signalbox.batches.keyset import LEAST, MOST, Page, next_size, walk
from signalbox.budget import Budget
from signalbox.ledger.context import Done


def turn(rows: list[int], asked: list[tuple[int, int]]) -> Callable[[int, int], Page[int]]:
    """Turn pages of these rows, of which only the even ones can be worked on."""

    def take(after: int, size: int) -> Page[int]:
        asked.append((after, size))
        page = [row for row in rows if row > after][:size]
        return Page(len(page), sum(row % 2 == 0 for row in page), page[-1] if page else after)

    return take


def test_pages_follow_each_other_and_a_short_one_is_last() -> None:
    asked: list[tuple[int, int]] = []
    assert walk(Budget.of(60), 0, turn(list(range(1, 1001)), asked)) == Done(500)
    assert asked == [(0, 100), (100, 200), (300, 400), (700, 800)]


@pytest.mark.parametrize("rows", [0, LEAST])
def test_a_walk_ends_where_nothing_is_left(rows: int) -> None:
    asked: list[tuple[int, int]] = []
    assert walk(Budget.of(60), 0, turn(list(range(1, rows + 1)), asked)) == Done(rows // 2)


def test_without_time_no_page_is_turned_and_work_is_left() -> None:
    asked: list[tuple[int, int]] = []
    assert walk(Budget.of(0), 0, turn([1], asked)) == Done(0, more=True)
    assert asked == []


@pytest.mark.parametrize(
    ("size", "seconds", "following"),
    [
        (100, 0.09, 200),
        (100, 0.11, 100),
        (800, 0.01, MOST),
        (MOST, 0.01, MOST),
        (800, 0.24, 800),
        (800, 0.26, 400),
        (150, 0.26, LEAST),
        (LEAST, 5.0, LEAST),
    ],
)
def test_page_grows_while_quick_and_shrinks_when_slow(size: int, seconds: float, following: int) -> None:
    assert next_size(size, seconds) == following
