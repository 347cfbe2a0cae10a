"""Keep how long a run may still work: Lambda's remaining time less a margin for the ledger and the answer."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """Keep an end on the monotonic clock, which no change of the wall clock moves."""

    ends_at: float

    @staticmethod
    def of(seconds: float) -> Budget:
        """Return a budget that ends this many seconds from now."""
        return Budget(time.monotonic() + seconds)

    @property
    def seconds_left(self) -> float:
        return max(0.0, self.ends_at - time.monotonic())

    @property
    def spent(self) -> bool:
        return self.seconds_left <= 0

    def allows(self, seconds: float) -> bool:
        """Return whether there is time for a step that takes about this long."""
        return self.seconds_left > seconds
