"""Ends an attempt that takes too long: by a signal in the main thread, where Lambda runs handlers.

Elsewhere (tests with several workers in one process) only the job's own budget tells it. The timer is set anew only
where it would come too late for the attempt at work: most attempts end long before, and cost no call of the system.
It rings again and again: code that catches every error, to try once more, would else never hear that its time is over.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from types import FrameType
from typing import Any, Self

from signalbox.jobs.outcome import JobTimedOut

AGAIN_AFTER_SECONDS = 5.0  # time to tidy up in


class Alarm:
    """The timer of a `with` block, in which one attempt after the other is begun and ended."""

    def __init__(self) -> None:
        self._works = threading.current_thread() is threading.main_thread()
        self._before: Any = None
        self._seconds = math.inf
        self._rang = False  # for the attempt at work, or the last one
        self._over_at = math.inf  # the attempt at work, on the monotonic clock
        self._rings_at = math.inf

    def __enter__(self) -> Self:
        if self._works:
            self._before = signal.signal(signal.SIGALRM, self._ring)
        return self

    def __exit__(self, *_: object) -> None:
        if self._works:
            self._over_at = math.inf
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)

    def begin(self, seconds: float) -> None:
        """From now until `end`, JobTimedOut is raised once the time is over."""
        self._seconds, self._rang = seconds, False
        self._over_at = time.monotonic() + seconds
        if self._works and self._over_at < self._rings_at:
            self._set(seconds)

    def end(self) -> None:
        self._over_at = math.inf

    def raise_again(self) -> None:
        """Raises what it raised in the attempt at work or the last one, where it did."""
        if self._rang:
            raise JobTimedOut(f"the attempt took longer than the {self._seconds:g} s that it may take")

    def _set(self, seconds: float) -> None:
        self._rings_at = self._over_at
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))  # zero would turn it off

    def _ring(self, _number: int, _frame: FrameType | None) -> None:
        self._rings_at = math.inf
        left = self._over_at - time.monotonic()
        if left <= 0:
            self._rang = True
            self._over_at = time.monotonic() + AGAIN_AFTER_SECONDS
            self._set(AGAIN_AFTER_SECONDS)
            self.raise_again()
        if left < math.inf:  # it was set for an attempt that has ended since
            self._set(left)
