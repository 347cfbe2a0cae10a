"""Invoke asynchronously: events wait in memory and are tried until they succeed, fail or grow too old.

A throttle costs an event time and no attempt, as in AWS. An event counts as in progress from the moment it is accepted
until its destination has its record.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from signalbox_laptop.lambda_api.errors import Throttled
from signalbox_laptop.lambda_control.destinations import (
    EVENT_AGE_EXCEEDED,
    RETRIES_EXHAUSTED,
    Conclusion,
    FailureDestinations,
)
from signalbox_laptop.lambda_control.function import Function
from signalbox_laptop.lambda_runtime.invocation import LambdaInvocation, Result

if TYPE_CHECKING:
    from signalbox_laptop.lambda_control.activity import Activity
    from signalbox_laptop.lambda_control.settings import ServiceSettings

_log = logging.getLogger(__name__)

_LONGEST_THROTTLE_FACTOR = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Describe one asynchronous invocation and its state so far."""

    function_name: str
    invocation: LambdaInvocation
    # Taken from the monotonic clock.
    accepted_at: float
    attempts: int = 0
    throttles: int = 0
    result: Result | None = None


class AsynchronousQueue:
    """Own the waiting events, and the threads that bring them to their functions."""

    def __init__(
        self,
        settings: ServiceSettings,
        activity: Activity,
        destinations: FailureDestinations,
        look_up: Callable[[str], Function],
        invoke: Callable[[Function, LambdaInvocation], Result],
    ) -> None:
        self._settings = settings
        self._activity = activity
        self._destinations = destinations
        self._look_up = look_up
        self._invoke = invoke
        self._changed = threading.Condition()
        self._waiting: list[tuple[float, int, Event]] = []
        self._order = itertools.count()
        self._stopping = False
        self._dispatcher = threading.Thread(target=self._dispatch, name="event-dispatcher", daemon=True)
        self._workers = ThreadPoolExecutor(settings.account_concurrency, thread_name_prefix="event")

    def start(self) -> None:
        self._dispatcher.start()

    def put(self, event: Event) -> None:
        self._activity.begin()
        self._wait(event, 0)

    def waiting(self) -> int:
        with self._changed:
            return len(self._waiting)

    def stop(self) -> None:
        """Stop, and drop waiting events: AWS would keep them in a queue that this machine does not have."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._dispatcher.join()

    def join(self) -> None:
        """Wait for the worker threads, once nothing can run any more."""
        self._workers.shutdown(cancel_futures=True)

    def _wait(self, event: Event, delay: float) -> None:
        with self._changed:
            heapq.heappush(self._waiting, (time.monotonic() + delay, next(self._order), event))
            self._changed.notify_all()

    def _dispatch(self) -> None:
        while (event := self._next_due()) is not None:
            self._workers.submit(self._attempt, event)

    def _next_due(self) -> Event | None:
        with self._changed:
            while not self._stopping:
                due = self._waiting[0][0] if self._waiting else None
                now = time.monotonic()
                if due is not None and due <= now:
                    return heapq.heappop(self._waiting)[2]
                self._changed.wait(None if due is None else due - now)
            return None

    def _attempt(self, event: Event) -> None:
        try:
            function = self._look_up(event.function_name)
            self._try(event, function)
        except Exception:
            # Its function is gone, or the laptop itself failed: a retry would not help, and no caller waits.
            if not self._stopping:
                _log.exception("event.lost function=%s request=%s", event.function_name, event.invocation.request_id)
            self._activity.end()

    def _try(self, event: Event, function: Function) -> None:
        if time.monotonic() - event.accepted_at > function.event_config.maximum_age:
            self._conclude(event, function, EVENT_AGE_EXCEEDED)
            return
        try:
            result = self._invoke(function, event.invocation)
        except Throttled:
            self._back_off(event)
        else:
            self._judge(replace(event, attempts=event.attempts + 1, result=result), function, failed=result.failed)

    def _back_off(self, event: Event) -> None:
        delay = self._settings.throttle_delay * min(2**event.throttles, _LONGEST_THROTTLE_FACTOR)
        self._wait(replace(event, throttles=event.throttles + 1), delay)

    def _judge(self, event: Event, function: Function, *, failed: bool) -> None:
        delays = self._settings.retry_delays
        if not failed:
            self._activity.end()
        elif event.attempts > function.event_config.retries:
            self._conclude(event, function, RETRIES_EXHAUSTED)
        else:
            self._wait(event, delays[min(event.attempts, len(delays)) - 1])

    def _conclude(self, event: Event, function: Function, condition: str) -> None:
        conclusion = Conclusion(
            request_id=event.invocation.request_id,
            payload=event.invocation.payload,
            condition=condition,
            invocations=event.attempts,
            result=event.result,
        )
        self._destinations.conclude(function, conclusion)
        self._activity.end()
