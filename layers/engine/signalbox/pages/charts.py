"""Compute the shapes of charts, in units of a drawing that is 600 wide and 100 high. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

WIDTH, HEIGHT = 600, 100


class Bar(NamedTuple):
    """Describe one column: its place, and how high its parts are."""

    x: float
    width: float
    good: float
    bad: float


def bars(values: Sequence[tuple[int, int]]) -> list[Bar]:
    """Return a column for each pair of what went well and what did not."""
    most = max((good + bad for good, bad in values), default=0)
    width = WIDTH / max(1, len(values))
    scale = HEIGHT / most if most else 0
    return [
        Bar(round(place * width, 2), round(width * 0.85, 2), round(good * scale, 1), round(bad * scale, 1))
        for place, (good, bad) in enumerate(values)
        if good or bad
    ]


def line(values: Sequence[float | None], most: float) -> str:
    """Return the path of a line through the values, up to `most`, with a gap where there is none."""
    width = WIDTH / max(1, len(values))
    path, down = [], False
    for place, value in enumerate(values):
        if value is None:
            down = False
            continue
        path.append(f"{'L' if down else 'M'}{(place + 0.5) * width:.1f} {HEIGHT * (1 - value / most):.1f}")
        if not down:
            path.append("h0.01")  # so that a single point is seen
        down = True
    return "".join(path)


def nice_span(seconds: float) -> float:
    """Return a round length that is at least as long, so that a drawing that grows changes seldom."""
    for step in (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 43200, 86400):
        if seconds <= step:
            return step
    return 86400 * -(-seconds // 86400)
