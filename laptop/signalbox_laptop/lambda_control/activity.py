"""Count the service's work in progress in one place, so that a caller can wait for "idle", not only ask."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Activity:
    """Count invocations, queued events and batches in hand: each begins, and ends."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._under_way = 0
        self._begun = 0

    @property
    def under_way(self) -> int:
        return self._under_way

    @property
    def begun(self) -> int:
        """Return how many ever began: the same number twice means that nothing happened in between."""
        return self._begun

    def begin(self) -> None:
        with self._changed:
            self._under_way += 1
            self._begun += 1

    def end(self) -> None:
        with self._changed:
            self._under_way -= 1
            if not self._under_way:
                self._changed.notify_all()

    @contextmanager
    def one(self) -> Iterator[None]:
        self.begin()
        try:
            yield
        finally:
            self.end()

    def wait(self, timeout: float) -> bool:
        """Wait until nothing is in progress."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._under_way, timeout)
