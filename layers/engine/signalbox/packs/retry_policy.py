"""Decide when a failed attempt is tried again: pure, with chance as an argument."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

# A larger exponent changes nothing: any cap is reached long before.
_MOST_DOUBLINGS = 60


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Say how often a job is tried, and how long it waits. Exponential waits are base * factor^(attempt - 1)."""

    max_attempts: int = 5
    backoff: Literal["fixed", "exponential"] = "exponential"
    base: timedelta = timedelta(seconds=2)
    factor: float = 2.0
    cap: timedelta = timedelta(minutes=15)
    jitter: Literal["none", "full", "twenty_percent"] = "full"
    # Being rate-limited spends no attempt, but a job fails if it is rate-limited this often or for this long.
    max_throttles: int = 1000
    throttled_at_most: timedelta = timedelta(days=1)

    def __post_init__(self) -> None:
        if self.max_attempts < 1 or self.base <= timedelta(0) or self.factor < 1 or self.cap < self.base:
            raise ValueError(
                f"{self} is not valid: attempts from 1, a base above zero and below the cap, a factor from 1"
            )


def throttle_delay(throttles: int) -> timedelta:
    """Return how long a job waits that was rate-limited this often before, without a given time."""
    return timedelta(seconds=min(30 << min(throttles, 5), 900))


def next_delay(policy: RetryPolicy, attempt: int, chance: float) -> timedelta:
    """Return how long to wait after the attempt of that number (from 1); `chance` is from 0 to 1.

    Full jitter spreads a crowd best. It waits for at least a tenth of the base: a retry at once meets the same fault.
    """
    seconds = policy.base.total_seconds()
    if policy.backoff == "exponential":
        seconds *= policy.factor ** min(attempt - 1, _MOST_DOUBLINGS)
    seconds = min(seconds, policy.cap.total_seconds())
    if policy.jitter == "full":
        seconds = max(seconds * chance, policy.base.total_seconds() / 10)
    elif policy.jitter == "twenty_percent":
        seconds *= 0.8 + 0.4 * chance
    return timedelta(seconds=seconds)
