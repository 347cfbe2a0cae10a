"""Decide when the job plane needs a person: pure rules, each over a few readings, with advice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """Collect what the rules judge; attempts and times are of the last day."""

    waiting: int = 0  # jobs that are due and have not begun
    completed: int = 0  # attempts
    failed: int = 0  # attempts, those that ran out of time among them
    p95_ms: float | None = None
    pending_dead_letters: int = 0
    silent_workers: int = 0  # workers whose jobs are STALE or FAILED
    standing_lanes: tuple[str, ...] = ()  # lanes in which jobs wait for long, and none has begun

    @property
    def failure_rate(self) -> float | None:
        """Return the share of the attempts that failed, or None where too few ended to tell."""
        ended = self.completed + self.failed
        return self.failed / ended if ended > 100 else None


@dataclass(frozen=True, slots=True)
class Alert:
    """Say what is wrong, and what to do next."""

    name: str
    severity: Literal["warning", "critical"]
    message: str
    advice: str


@dataclass(frozen=True, slots=True)
class AlertRule:
    """Return a message where its alert is due."""

    name: str
    severity: Literal["warning", "critical"]
    judge: Callable[[Readings], str | None]
    advice: str

    def alert(self, readings: Readings) -> Alert | None:
        message = self.judge(readings)
        return None if message is None else Alert(self.name, self.severity, message, self.advice)


def alerts(readings: Readings) -> list[Alert]:
    """Return the alerts that are due, in the order of the rules."""
    return [alert for rule in RULES if (alert := rule.alert(readings))]


def _deeper_than(most: int) -> Callable[[Readings], str | None]:
    def judge(readings: Readings) -> str | None:
        return f"{readings.waiting} due jobs are waiting, more than {most}" if readings.waiting > most else None

    return judge


def _worker_down(readings: Readings) -> str | None:
    found = []
    if readings.silent_workers:
        workers = "1 worker has" if readings.silent_workers == 1 else f"{readings.silent_workers} workers have"
        found.append(f"{workers} missed heartbeats for minutes")
    if readings.standing_lanes:
        found.append(f"jobs wait in {', '.join(readings.standing_lanes)}, and none of them starts")
    return "; ".join(found) or None


def _high_failure_rate(readings: Readings) -> str | None:
    rate = readings.failure_rate
    if rate is None or rate <= 0.1:
        return None
    return f"{readings.failed} of {readings.completed + readings.failed} attempts failed, more than 10 %"


def _dlq_accumulation(readings: Readings) -> str | None:
    number = readings.pending_dead_letters
    return f"{number} dead letters are open, more than 50" if number > 50 else None


def _slow_jobs(readings: Readings) -> str | None:
    if readings.p95_ms is None or readings.p95_ms <= 60_000:
        return None
    return f"the slowest 5 % of jobs take more than {readings.p95_ms / 1000:.0f} s, which is above a minute"


RULES = (
    AlertRule(
        "high_queue_depth",
        "warning",
        _deeper_than(1000),
        "consider more workers: raise the maximum concurrency of the lanes' event source mappings",
    ),
    AlertRule(
        "critical_queue_depth",
        "critical",
        _deeper_than(5000),
        "raise the maximum concurrency of the lanes' event source mappings now, or pause jobs that are not urgent",
    ),
    AlertRule(
        "worker_down",
        "critical",
        _worker_down,
        "check the workers' logs, and that the lanes' event source mappings are enabled; hanging jobs are "
        "rescued when their lease expires",
    ),
    AlertRule(
        "high_failure_rate",
        "warning",
        _high_failure_rate,
        "check the failures by type: `signalbox stats`, then `signalbox jobs --status failed`",
    ),
    AlertRule(
        "dlq_accumulation",
        "warning",
        _dlq_accumulation,
        "triage `signalbox dead-letters`, by fingerprint: resolve, ignore or redrive them",
    ),
    AlertRule(
        "slow_jobs",
        "warning",
        _slow_jobs,
        "find the slowest types in `signalbox stats`: split their work into pieces, or use the heavy lane",
    ),
)
