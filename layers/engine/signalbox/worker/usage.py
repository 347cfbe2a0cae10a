"""Measure what an attempt costs: its thread's processor time, and the process's peak memory so far."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Generator
from types import coroutine
from typing import Any

from signalbox.postgres.fork import end_child

_UNIT = 1 << 20 if sys.platform == "darwin" else 1 << 10


def peak_memory_mb() -> int:
    """Return the peak of the whole process: the kernel has no other cheap measure."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // _UNIT


class Meter:
    """Drive a coroutine, and measure its steps on the loop: waiting in between costs nothing."""

    def __init__(self) -> None:
        self.cpu = 0.0
        self._owner = os.getpid()
        self.stepping_since = 0.0  # monotonic; 0: it waits
        self._reported = 0.0  # the start of the step that was reported

    def blocks(self, now: float, seconds: float) -> bool:
        """Return whether a step has taken this long; only once for each step."""
        since = self.stepping_since
        if not since or since == self._reported or now - since < seconds:
            return False
        self._reported = since
        return True

    @coroutine
    def drive(self, awaitable: Any) -> Generator[Any, Any, Any]:
        steps: Generator[Any, None, Any] = awaitable.__await__()
        error: BaseException | None = None
        while True:
            cpu, self.stepping_since = time.thread_time(), time.monotonic()
            try:
                waits_for = steps.send(None) if error is None else steps.throw(error)
            except StopIteration as stop:
                return stop.value
            finally:
                end_child(self._owner)
                self.cpu += time.thread_time() - cpu
                self.stepping_since = 0.0
            try:
                error = None
                yield waits_for
            except BaseException as thrown:
                error = thrown
