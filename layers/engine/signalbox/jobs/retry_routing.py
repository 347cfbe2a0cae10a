"""Choose how a job's next attempt starts: by a message that SQS delays, or by `dispatch_jobs`.

SQS delays a message by a quarter of an hour at most. A job that waits no longer than that is sent at once, and
dispatch_jobs looks for it only when its message should have come long ago. What waits longer is sent when due.
"""

from __future__ import annotations

import math
from datetime import timedelta

SQS_MAX_DELAY = timedelta(minutes=15)
# How long a message may wait in its lane before dispatch_jobs checks whether it was lost.
LOST_AFTER = timedelta(minutes=2)


def goes_by_message(delay: timedelta) -> bool:
    return delay <= SQS_MAX_DELAY


def look_after(delay: timedelta) -> timedelta:
    """Return in how long dispatch_jobs looks for a job that begins its next attempt after this delay."""
    return delay + LOST_AFTER if goes_by_message(delay) else delay


def delay_seconds(delay: timedelta) -> int:
    """Return SQS's DelaySeconds, rounded up: a message that comes too early achieves nothing."""
    return math.ceil(min(max(delay, timedelta(0)), SQS_MAX_DELAY).total_seconds())
