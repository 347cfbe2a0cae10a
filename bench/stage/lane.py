"""Stand in for SQS within the benchmark's process: messages are kept until they are due, all four lanes in one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from queue import PriorityQueue
from time import monotonic
from typing import Any


class Lane:
    """Replace the client of SQS, as far as the worker and dispatch_jobs call it."""

    def __init__(self) -> None:
        self._messages: PriorityQueue[tuple[float, int, dict[str, Any]]] = PriorityQueue()
        self._numbers = count()

    def get_queue_url(self, **asked: Any) -> dict[str, Any]:
        return {"QueueUrl": asked["QueueName"]}

    def get_queue_attributes(self, **_: Any) -> dict[str, Any]:
        return {"Attributes": {"ApproximateNumberOfMessages": str(self._messages.qsize())}}

    def send_message_batch(self, **asked: Any) -> dict[str, Any]:
        for entry in asked["Entries"]:
            self.put(entry["MessageBody"], entry["DelaySeconds"])
        return {"Successful": asked["Entries"]}

    def put(self, body: str, delay: float = 0.0) -> None:
        number = next(self._numbers)
        self._messages.put((monotonic() + delay, number, {"messageId": str(number), "body": body}))

    def take(self, most: int) -> list[dict[str, Any]]:
        """Return the records that are due, the oldest first."""
        return [record for _, record in zip(range(most), self._due(monotonic()), strict=False)]

    def _due(self, now: float) -> Iterator[dict[str, Any]]:
        while self._messages.queue and self._messages.queue[0][0] <= now:
            yield self._messages.get()[2]
