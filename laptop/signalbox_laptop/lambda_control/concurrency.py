"""Limit how many invocations run at once: by a function's reserved concurrency, or the account's for all others.

A reservation works both ways, as in AWS: its function gets no more, and no other function gets its share.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from signalbox_laptop.lambda_api.errors import Throttled
from signalbox_laptop.lambda_control.function import Function


class Concurrency:
    """Count running invocations by function, and apply the limits."""

    def __init__(self, account_limit: int) -> None:
        self._account_limit = account_limit
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()
        self._reserved: dict[str, int] = {}

    @contextmanager
    def one(self, function: Function) -> Iterator[None]:
        """Take a place for one invocation, or raise Throttled."""
        with self._lock:
            self._note_reservation(function)
            self._refuse_excess(function)
            self._running[function.name] += 1
        try:
            yield
        finally:
            with self._lock:
                self._running[function.name] -= 1

    def running(self) -> dict[str, int]:
        with self._lock:
            return {name: count for name, count in self._running.items() if count}

    def _note_reservation(self, function: Function) -> None:
        if function.reserved_concurrency is None:
            self._reserved.pop(function.name, None)
        else:
            self._reserved[function.name] = function.reserved_concurrency

    def _refuse_excess(self, function: Function) -> None:
        if function.reserved_concurrency is not None:
            if self._running[function.name] >= function.reserved_concurrency:
                raise Throttled("ReservedFunctionConcurrentInvocationLimitExceeded")
            return
        shared = sum(count for name, count in self._running.items() if name not in self._reserved)
        if shared >= self._account_limit - sum(self._reserved.values()):
            raise Throttled("ConcurrentInvocationLimitExceeded")
