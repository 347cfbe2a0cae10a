"""What an attempt costs: the processor time of this process, and the most memory it has had so far."""

from __future__ import annotations

import resource
import sys
import time
from typing import NamedTuple

_UNIT = 1 << 20 if sys.platform == "darwin" else 1 << 10


def spent() -> tuple[float, int]:
    """The processor's seconds so far; and the peak of memory in MB, since the kernel tells no other for so little: an
    attempt is never reported to have used less."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss // _UNIT


class Cost(NamedTuple):
    """Of one attempt; its begin and end are told since the claim, by which the database has the clock."""

    began_ms: float
    ended_ms: float
    cpu_ms: float
    memory_mb: int

    @staticmethod
    def of(claimed: float, began: float, cpu: float) -> Cost:
        """From monotonic seconds, and the processor's when it began."""
        now, memory_mb = spent()
        ended = time.monotonic()
        return Cost((began - claimed) * 1000, (ended - claimed) * 1000, (now - cpu) * 1000, memory_mb)
