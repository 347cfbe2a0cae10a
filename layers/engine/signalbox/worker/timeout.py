"""End an attempt that takes too long: by a signal, by an error raised in its thread, or by cancelling its task.

The signal is for the main thread, the error for other threads, the cancelling for the event loop. A time-out repeats
every few seconds, because code that catches every error to try again may catch the first one. None of the three
interrupts C code that hangs: the driver gives such an attempt up.
"""

from __future__ import annotations

import asyncio
import math
import signal
import threading
import time
from contextlib import suppress
from types import FrameType
from typing import Any, Protocol, Self

import psycopg

from signalbox.packs.outcome import JobTimedOut
from signalbox.postgres.connection import CANCEL_PATIENCE_SECONDS, Connection

AGAIN_AFTER_SECONDS = 5.0  # time to tidy up


class Timer(Protocol):
    """Time one attempt: between its begin and its end, raise JobTimedOut once the time is over."""

    rang: bool

    @property
    def over_at(self) -> float: ...

    def end(self) -> None: ...


class ThreadTimer:
    """Raise JobTimedOut in its thread when the driver rings. A pause delays it while a connection changes hands."""

    def __init__(self) -> None:
        self.rang = False
        self.rings_at = math.inf
        self._over_at = math.inf
        self._lock = threading.Lock()
        self._armed = False
        self._thread = 0
        self._paused_at = 0.0
        self._connection: Connection | None = None
        # A statement was cancelled on these: the cancel may still hit the next statement, which must not be another
        # job's.
        self.cancelled: set[Connection] = set()

    @property
    def over_at(self) -> float:
        """Return when the time is over; never during a pause: a job that waits for a connection does not hang."""
        return math.inf if self._paused_at else self._over_at

    def begin(self, seconds: float, connection: Connection | None = None) -> None:
        self._thread = threading.get_ident()
        self._over_at = self.rings_at = time.monotonic() + seconds
        self._connection = connection
        self._armed = True

    def end(self) -> None:
        """Raise nothing from now on; swallow what was just being raised, which `rang` shows."""
        while True:
            try:
                with self._lock:
                    self._armed = False
                    self._connection = None
                if self.rang:
                    _raise_in(self._thread, None)
                return
            except JobTimedOut:
                continue

    def pause(self) -> None:
        if self._thread == threading.get_ident():  # the job's own threads are not interrupted
            self.end()
            self._paused_at = time.monotonic()

    def resume(self, connection: Connection | None = None) -> None:
        """Continue, with as much time left as at the pause."""
        if self._thread != threading.get_ident():
            return
        waited = time.monotonic() - self._paused_at
        self._over_at += waited
        self.rings_at += waited
        self._paused_at = 0.0
        with self._lock:
            self._connection = connection
            self._armed = True

    def ring(self) -> None:
        """Raise in the attempt's thread. The driver calls this once the time is over."""
        now = time.monotonic()
        with self._lock:
            if not self._armed or now < self.rings_at:
                return
            self.rings_at = now + AGAIN_AFTER_SECONDS
            self.rang = True
            _raise_in(self._thread, JobTimedOut)
            connection = self._connection
            if connection is not None:
                self.cancelled.add(connection)
        if connection is not None:  # only a cancel interrupts a statement that waits for its answer
            with suppress(psycopg.Error):
                connection.cancel_safe(timeout=CANCEL_PATIENCE_SECONDS)


class LoopTimer:
    """Cancel the task that began it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.rang = False
        self.over_at = math.inf
        self._loop = loop
        self._handle: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[Any] | None = None

    def begin(self, seconds: float) -> None:
        self._task = asyncio.current_task()
        self.over_at = time.monotonic() + seconds
        self._handle = self._loop.call_later(seconds, self._ring)

    def end(self) -> None:
        if self._handle is not None:
            self._handle.cancel()

    def _ring(self) -> None:
        self.rang = True
        if self._task is not None:
            self._task.cancel()
        self._handle = self._loop.call_later(AGAIN_AFTER_SECONDS, self._ring)


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Raise an error at the thread's next step, by Python's own means. None takes back one not yet raised."""
    import ctypes

    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error) if error else None)


class SignalTimer:
    """Time attempts in the main thread: a `with` block, in which one after the other begins and ends.

    The alarm is set again only where it would come too late, so that most attempts cost no system call. In other
    threads, as in tests with several workers in one process, only the job's own budget limits it.
    """

    def __init__(self) -> None:
        self._works = self._is_here
        self._before: Any = None
        self.rang = False  # for the running attempt, or the last one
        self.over_at = math.inf  # of the running attempt, on the monotonic clock
        self._due_at = math.inf  # when to ring next
        self._paused = False
        # As in ThreadTimer, but always empty: the state of its connection shows that a signal interrupted a statement.
        self.cancelled: frozenset[Connection] = frozenset()
        self._rings_at = math.inf

    def __enter__(self) -> Self:
        if self._works:
            self._before = signal.signal(signal.SIGALRM, self._ring)
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        if self._works:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)

    def begin(self, seconds: float, _connection: Connection | None = None) -> None:
        self.rang = False
        self.over_at = self._due_at = time.monotonic() + seconds
        if self._works and self._due_at < self._rings_at:
            self._set(seconds)

    def end(self) -> None:
        self.over_at = self._due_at = math.inf

    def pause(self) -> None:
        """Raise nothing for now: code that borrows a connection must not lose it."""
        if self._is_here:
            self._paused = True

    def resume(self, _connection: Connection | None = None) -> None:
        if self._is_here:
            self._paused = False

    @property
    def _is_here(self) -> bool:
        return threading.current_thread() is threading.main_thread()

    def _set(self, seconds: float) -> None:
        self._rings_at = time.monotonic() + seconds
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))  # zero would turn it off

    def _ring(self, _number: int, _frame: FrameType | None) -> None:
        self._rings_at = math.inf
        left = self._due_at - time.monotonic()
        if left <= 0 and not self._paused:
            self.rang = True
            self._due_at = time.monotonic() + AGAIN_AFTER_SECONDS
            self._set(AGAIN_AFTER_SECONDS)
            raise JobTimedOut
        if left < math.inf:  # it was set for an attempt that has ended since, or is paused
            self._set(max(left, 0.1))
