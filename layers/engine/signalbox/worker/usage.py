"""What an attempt costs: the processor's time of its thread, and the most memory that the process has had so far."""

from __future__ import annotations

import resource
import sys
from typing import NamedTuple

_UNIT = 1 << 20 if sys.platform == "darwin" else 1 << 10


def peak_memory_mb() -> int:
    """The peak of the whole process, since the kernel tells no other for so little."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // _UNIT


class Cost(NamedTuple):
    """Of one attempt; its begin and end are told since the claim, by which the database has the clock."""

    began_ms: float
    ended_ms: float
    cpu_ms: float
    memory_mb: int
