"""Define what a job may return or raise: each says what becomes of the job, and nothing of how.

A job that returns nothing has completed. Errors are distinguished by their type and status code, never by their words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from signalbox.errors import SignalboxError


@dataclass(frozen=True, slots=True)
class OutputFile:
    """Describe a file that a job has written, for those who look for it or check it."""

    key: str
    sha256: str  # in hex
    bytes: int
    content_type: str
    kept_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Completed:
    """The job has done all of its work."""

    result: Any = None  # JSON
    output_files: Sequence[str | OutputFile] = ()


@dataclass(frozen=True, slots=True)
class More:
    """A piece of the work is done: the job continues from the cursor, and has all its attempts again."""

    cursor: Any
    percent: int | None = None
    message: str | None = None
    delay: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class Snooze:
    """Nothing can be done yet. This spends no attempt. Without a cursor, that of the last piece stays."""

    delay: timedelta
    reason: str
    cursor: Any = None


@dataclass(frozen=True, slots=True)
class Wait:
    """The job goes on once `signal` is sent with this key, or at this time. Until then it holds nothing.

    This spends no attempt. `context.received()` then says which of the two has come.
    """

    key: str
    until: datetime
    cursor: Any = None


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The work is no longer wanted."""

    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The work is refused for good. What a transactional job has written is kept, as a raised error would not."""

    reason: str


Outcome = Completed | More | Snooze | Wait | Cancelled | Failed | None


@dataclass(frozen=True, slots=True)
class Signal:
    """The signal that the job waited for has come."""

    payload: Any


@dataclass(frozen=True, slots=True)
class Deadline:
    """No signal has come in time."""


class JobFailed(SignalboxError):
    """The job failed; subclasses say whether a retry can help. Any other error counts as transient."""


class Transient(JobFailed):
    """The job may well succeed the next time."""

    def __init__(self, message: str, retry_after: timedelta | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RateLimited(JobFailed):
    """The other side asks to wait. This spends no attempt; without `retry_after` waits start at 30 s and grow."""

    def __init__(self, message: str, retry_after: timedelta | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Permanent(JobFailed):
    """The job would fail the same way every time."""


class JobTimedOut(JobFailed):
    """The attempt took longer than its type allows."""


class JobCancelled(JobFailed):
    """An operator asked for the job to be cancelled, and it noticed."""
