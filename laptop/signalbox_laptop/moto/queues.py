"""Let moto's queues find messages without a walk over all of them.

Moto 5.2 walks every message of a queue for each call, and three times for each one sent, so that a lane gets slower
with each job. Call this in moto's process, before its first request.
"""

from __future__ import annotations

import itertools
import threading
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from importlib import import_module
from types import SimpleNamespace
from typing import Any


def patch_queues() -> None:
    """Apply all patches for queues."""
    models: Any = import_module("moto.sqs.models")
    _index_messages(models)
    _find_by_receipt(models.Queue, models.SQSBackend)
    _leave_groups_to_fifo_queues(models.Queue)


def _index_messages(models: Any) -> None:
    """Give moto an index in place of its list. Its constructor and its purge assign an empty list."""

    def begin_anew(self: Any, _empty: object) -> None:
        self.index = _Index(models.unix_time_millis)

    queue = models.Queue
    queue._messages = property(lambda self: self.index, begin_anew)
    queue.messages = property(lambda self: _Visible(self.index))
    queue.approximate_number_of_messages_delayed = property(lambda self: self.index.counts()[1])
    queue.approximate_number_of_messages_not_visible = property(lambda self: self.index.counts()[2])


def _find_by_receipt(queue: Any, backend: Any) -> None:
    """Run moto's own code as if the queue held only the message that the receipt names."""
    delete, change = queue.delete_message, backend.change_message_visibility

    def delete_message(self: Any, receipt_handle: str) -> None:
        found = self.index.find(receipt_handle)
        delete(_holding(found, self), receipt_handle)
        for message in found:
            self.index.remove(message)

    def change_message_visibility(self: Any, queue_name: str, receipt_handle: str, visibility_timeout: int) -> None:
        whole = self.get_queue(queue_name)
        found = whole.index.find(receipt_handle)
        part = SimpleNamespace(get_queue=lambda _: _holding(found, whole))
        change(part, queue_name, receipt_handle, visibility_timeout)
        for message in found:
            whole.index.place(message)

    queue.delete_message, backend.change_message_visibility = delete_message, change_message_visibility


def _holding(found: list[Any], queue: Any) -> SimpleNamespace:
    """Return the queue as if it held only what was found."""
    return SimpleNamespace(
        _messages=found, pending_messages=queue.pending_messages, deleted_messages=queue.deleted_messages
    )


def _leave_groups_to_fifo_queues(queue: Any) -> None:
    """Compute groups for FIFO queues only: elsewhere no message in flight holds up its group, yet each receive asks."""
    groups = queue.pending_message_groups.fget
    queue.pending_message_groups = property(lambda self: groups(self) if self.fifo_queue else set())


class _Index:
    """Index a queue's messages in order of sending. Receivable ones are kept apart from delayed ones and those in
    flight, which come back when due."""

    def __init__(self, now_ms: Callable[[], float]) -> None:
        self._now_ms = now_ms
        self._lock = threading.RLock()
        self._next = itertools.count()
        self._numbers: dict[Any, int] = {}
        self._receipts: dict[str, Any] = {}
        self._visible: list[tuple[int, Any]] = []
        self._delayed: set[Any] = set()
        # This is a heap. An entry may be out of date: the message itself says whether it is visible.
        self._due: list[tuple[float, int, Any]] = []

    def __iter__(self) -> Iterator[Any]:
        with self._lock:
            return iter(list(self._numbers))

    def append(self, message: Any) -> None:
        with self._lock:
            # Two receives may move one message to the dead-letter queue.
            self._numbers.setdefault(message, next(self._next))
            for handle in filter(None, message.all_receipt_handles):
                self._receipts[handle] = message
            self.place(message)

    def remove(self, message: Any) -> None:
        with self._lock:
            self._withdraw(message)
            self._numbers.pop(message, None)
            for handle in message.all_receipt_handles:
                self._receipts.pop(handle, None)

    def find(self, receipt_handle: str) -> list[Any]:
        """Return the message that has had this receipt, or none."""
        with self._lock:
            message = self._receipts.get(receipt_handle)
            return [] if message is None else [message]

    def counts(self) -> tuple[int, int, int]:
        """Return how many are visible, delayed and in flight."""
        with self._lock:
            self._place_due()
            visible, delayed = len(self._visible), len(self._delayed)
            return visible, delayed, len(self._numbers) - visible - delayed

    def take(self) -> Iterator[Any]:
        """Yield the visible messages in order; no other receive gets them until the iteration ends."""
        self._place_due()
        taken: list[Any] = []
        try:
            while message := self._take_first():
                taken.append(message)
                yield message
        finally:
            for message in taken:
                self.place(message)

    def place(self, message: Any) -> None:
        """Move a message to its place, after its receipt or its visibility may have changed."""
        with self._lock:
            if message not in self._numbers:
                return
            self._withdraw(message)
            if message.receipt_handle:
                self._receipts[message.receipt_handle] = message
            if message.visible and not message.delayed:
                insort(self._visible, (self._numbers[message], message))
                return
            if message.delayed:
                self._delayed.add(message)
            heappush(self._due, (max(message.visible_at, message.delayed_until), next(self._next), message))

    def _take_first(self) -> Any:
        with self._lock:
            return self._visible.pop(0)[1] if self._visible else None

    def _place_due(self) -> None:
        with self._lock:
            now, due = self._now_ms(), []
            while self._due and self._due[0][0] <= now:
                due.append(heappop(self._due)[2])
            for message in due:
                self.place(message)

    def _withdraw(self, message: Any) -> None:
        self._delayed.discard(message)
        number = self._numbers.get(message, -1)
        place = bisect_left(self._visible, (number,))
        if self._visible[place : place + 1] == [(number, message)]:
            del self._visible[place]


class _Visible:
    """Stand in for moto's list of visible messages."""

    def __init__(self, index: _Index) -> None:
        self._index = index

    def __len__(self) -> int:
        return self._index.counts()[0]

    def __iter__(self) -> Iterator[Any]:
        return self._index.take()
