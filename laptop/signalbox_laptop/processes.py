"""Find and end processes that the laptop's stack started: politely first, then for sure.

A process is identified by its number and its start time, since numbers are used again.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass

import psutil

_POLITELY = (signal.SIGTERM, signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """Record a process, to find it again, and no other."""

    pid: int
    began: float

    @staticmethod
    def of(pid: int) -> ProcessRecord:
        return ProcessRecord(pid, psutil.Process(pid).create_time())

    def find(self) -> psutil.Process | None:
        """Return the process, if it still runs and is the one that was recorded."""
        try:
            process = psutil.Process(self.pid)
            return process if abs(process.create_time() - self.began) < 1 and runs(process) else None
        except psutil.NoSuchProcess:
            return None


def runs(process: psutil.Process) -> bool:
    """Say whether it is at work. A zombie is not: in a container, it may never be collected."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def end(process: psutil.Process, signals: Sequence[signal.Signals] = _POLITELY, patience_seconds: float = 10) -> None:
    """Send one signal after the other, each when the one before was ignored for too long."""
    for number in signals:
        try:
            process.send_signal(number)
        except psutil.NoSuchProcess:
            return
        if wait_for_end(process, patience_seconds):
            return


def wait_for_end(process: psutil.Process, patience_seconds: float) -> bool:
    """Say whether it ended in time."""
    deadline = time.monotonic() + patience_seconds
    while runs(process):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
