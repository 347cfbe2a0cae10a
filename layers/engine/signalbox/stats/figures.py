"""Add up attempts, over any time, types and lanes: pure. The rows of job_metrics are such sums."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from signalbox.stats import histogram

_SUMMED = (
    "begun", "completed", "failed", "timed_out", "cancelled", "throttled", "others", "total_ms", "waited_ms", "cpu_ms",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Figures:
    """Count attempts. Times are of those that ran: to an end, a failure, or a next piece."""

    begun: int = 0
    completed: int = 0
    failed: int = 0
    timed_out: int = 0
    cancelled: int = 0
    throttled: int = 0
    others: int = 0  # continued, snoozed, given back or lost
    total_ms: int = 0
    most_ms: int = 0
    waited_ms: int = 0
    durations: Sequence[int] = histogram.NOTHING
    waits: Sequence[int] = histogram.NOTHING
    most_memory_mb: int | None = None
    cpu_ms: int = 0

    @property
    def ended(self) -> int:
        return self.completed + self.failed + self.timed_out + self.cancelled + self.throttled + self.others

    @property
    def failure_rate(self) -> float | None:
        """Return the share that failed of the attempts that completed or failed."""
        failures = self.failed + self.timed_out
        return share(failures, self.completed + failures)

    @property
    def average_ms(self) -> float | None:
        return share(self.total_ms, sum(self.durations))

    @property
    def average_wait_ms(self) -> float | None:
        return share(self.waited_ms, sum(self.waits))

    def duration_ms(self, part: float) -> float | None:
        """Return a percentile, such as 0.95, of how long attempts took."""
        return histogram.percentile(self.durations, part, self.most_ms)

    def wait_ms(self, part: float) -> float | None:
        """Return a percentile of how long jobs waited in their lane."""
        return histogram.percentile(self.waits, part, float("inf"))

    def as_json(self) -> dict[str, Any]:
        """Return the figures for people and dashboards, times to a tenth of a millisecond."""
        return {
            "attempts": self.ended,
            "begun": self.begun,
            "completed": self.completed,
            "failed": self.failed,
            "timed_out": self.timed_out,
            "cancelled": self.cancelled,
            "throttled": self.throttled,
            "others": self.others,
            "failure_rate": rounded(self.failure_rate, 4),
            "average_ms": rounded(self.average_ms),
            "p50_ms": rounded(self.duration_ms(0.5)),
            "p95_ms": rounded(self.duration_ms(0.95)),
            "p99_ms": rounded(self.duration_ms(0.99)),
            "most_ms": self.most_ms if sum(self.durations) else None,
            "average_wait_ms": rounded(self.average_wait_ms),
            "p95_wait_ms": rounded(self.wait_ms(0.95)),
            "most_memory_mb": self.most_memory_mb,
            "cpu_ms": self.cpu_ms,
        }


def add_up(figures: Iterable[Figures]) -> Figures:
    """Return the sum of all figures."""
    parts = list(figures)
    sums = {name: sum(getattr(one, name) for one in parts) for name in _SUMMED}
    return Figures(
        **sums,
        most_ms=max((one.most_ms for one in parts), default=0),
        durations=histogram.add(histogram.NOTHING, *(one.durations for one in parts)),
        waits=histogram.add(histogram.NOTHING, *(one.waits for one in parts)),
        most_memory_mb=max((one.most_memory_mb for one in parts if one.most_memory_mb), default=None),
    )


def share(part: float, whole: float) -> float | None:
    """Return the part of the whole, or None where the whole is zero."""
    return part / whole if whole else None


def rounded(value: float | None, digits: int = 1) -> float | None:
    return None if value is None else round(value, digits)
