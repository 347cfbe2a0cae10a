"""What an attempt costs: the processor time of this process, and the most memory it has had so far."""

from __future__ import annotations

import resource
import sys

_UNIT = 1 << 20 if sys.platform == "darwin" else 1 << 10


def spent() -> tuple[float, int]:
    """The processor's seconds so far; and the peak of memory in MB, since the kernel tells no other for so little: an
    attempt is never reported to have used less."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss // _UNIT
