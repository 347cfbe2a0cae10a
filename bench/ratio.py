"""Compare a measurement with its floor. Rounds alternate between the two, so that a busy machine affects both alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter


@dataclass(frozen=True, slots=True)
class Ratio:
    """Say what was measured, what it is compared with, and the largest ratio allowed."""

    what: str
    floor: str
    ours: float
    theirs: float
    bound: float | None = None
    unit: str = "ms"

    def __str__(self) -> str:
        ratio = self.ours / self.theirs
        verdict = (
            "" if self.bound is None else f", bound {self.bound:.2f}: {'met' if ratio <= self.bound else 'MISSED'}"
        )
        return (
            f"{self.what}: {_shown(self.ours)} {self.unit}\n  against {self.floor}: {_shown(self.theirs)} {self.unit}\n"
            f"  ratio {ratio:.2f}{verdict}"
        )


def _shown(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def alternate(rounds: int, *measured: Callable[[], float]) -> list[float]:
    """Return the median of each, in milliseconds, after a round to warm up; each call returns its own seconds."""
    for once in measured:
        once()
    taken: list[list[float]] = [[] for _ in measured]
    for _ in range(rounds):
        for times, once in zip(taken, measured, strict=True):
            times.append(once())
    return [median(times) * 1000 for times in taken]


def timed(act: Callable[[], object]) -> Callable[[], float]:
    """Return a function that does the act and returns how many seconds it took."""

    def measure() -> float:
        began = perf_counter()
        act()
        return perf_counter() - began

    return measure
