"""Leave a receiver alone that fails again and again: one delivery at a time probes it, the others wait.

Each worker knows only what it has seen itself. That needs no table, and is forgotten with the process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import Lock

FAILURES_IN_A_ROW = 5
WAIT_SECONDS = 30.0
MOST_RECEIVERS = 10_000


@dataclass(slots=True)
class _Receiver:
    failures: int = 0
    probe_at: float = 0.0


class Breaker:
    """Track all receivers whose last delivery failed."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._failing: dict[Hashable, _Receiver] = {}

    def wait_for(self, receiver: Hashable) -> float:
        """Return how many seconds to leave it alone; 0: deliver. A delivery that may probe makes the others wait."""
        with self._lock:
            known = self._failing.get(receiver)
            if known is None or known.failures < FAILURES_IN_A_ROW:
                return 0.0
            now = self._clock()
            if now < known.probe_at:
                return known.probe_at - now
            known.probe_at = now + WAIT_SECONDS
            return 0.0

    def note_failure(self, receiver: Hashable) -> None:
        with self._lock:
            if len(self._failing) >= MOST_RECEIVERS:
                self._failing.clear()
            known = self._failing.setdefault(receiver, _Receiver())
            known.failures += 1
            known.probe_at = self._clock() + WAIT_SECONDS

    def note_success(self, receiver: Hashable) -> None:
        with self._lock:
            self._failing.pop(receiver, None)
