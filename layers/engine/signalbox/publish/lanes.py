"""Send to the lanes: SQS queues that carry a job's id and type to a worker.

Sending comes after the commit and may fail: the jobs stay queued, and dispatch_jobs sends them later. A message that is
lost or doubled changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from signalbox.aws.clients import Clients
from signalbox.aws.errors import unavailable
from signalbox.aws.sqs import Entry, call_in_batches, queue_url
from signalbox.jobs.job_message import JobMessage
from signalbox.jobs.retry_routing import delay_seconds


@dataclass(frozen=True, slots=True)
class Lanes:
    """Send to the four queues of a stack, `{stack}-high` and so on."""

    clients: Clients
    stack: str

    def send(self, messages: Sequence[JobMessage]) -> int:
        """Return how many messages SQS took; raise Unavailable only where it can't be reached at all."""
        entries: dict[str, list[Entry]] = {}
        for message in messages:
            entries.setdefault(f"{self.stack}-{message.lane}", []).append(_entry(message))
        return call_in_batches(self.clients, "send_message_batch", entries) if entries else 0

    def depth(self, lane: str, *, at_hand: bool = False) -> int:
        """Return about how many messages the lane has; `at_hand` counts only those neither hidden nor delayed."""
        names = ("",) if at_hand else ("", "NotVisible", "Delayed")
        wanted: list[Any] = [f"ApproximateNumberOfMessages{name}" for name in names]
        with unavailable(f"lane '{lane}' does not report its depth"):
            url = queue_url(self.clients, f"{self.stack}-{lane}")
            answer = self.clients.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=wanted)
        return sum(int(answer["Attributes"][name]) for name in wanted)


def _entry(message: JobMessage) -> Entry:
    return {
        "MessageBody": json.dumps({"job_id": message.job_id, "job_type": message.job_type}),
        "MessageGroupId": message.group,
        "DelaySeconds": delay_seconds(message.delay),
    }
