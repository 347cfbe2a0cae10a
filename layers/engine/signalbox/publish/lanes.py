"""The lanes: SQS queues that carry a job's id and type to a worker. A message that is lost or doubled changes nothing.

Sending comes after the commit and may fail: the jobs stay queued, and dispatch_jobs sends them later.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from signalbox.aws.clients import Clients
from signalbox.aws.sqs import queue_url
from signalbox.errors import Unavailable

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
from signalbox.jobs.job_message import JobMessage

CALL = 10  # as many as SQS takes
AT_ONCE = 8
LONGEST_DELAY_SECONDS = 900  # that SQS knows


@dataclass(frozen=True, slots=True)
class Lanes:
    """The four queues of a stack, `{stack}-high` and so on."""

    clients: Clients
    stack: str

    def send(self, messages: Sequence[JobMessage]) -> int:
        """How many SQS took. Raises only where it can't be reached at all."""
        if not messages:
            return 0
        sqs = self.clients.sqs
        calls = list(_calls(messages))
        if len(calls) == 1:
            return self._send(sqs, *calls[0])
        with ThreadPoolExecutor(AT_ONCE) as threads:
            return sum(threads.map(lambda call: self._send(sqs, *call), calls))

    def depth(self, lane: str, *, at_hand: bool = False) -> int:
        """About how many messages are in the lane; `at_hand`: without those that are under way or delayed."""
        from botocore.exceptions import BotoCoreError, ClientError

        names = ("",) if at_hand else ("", "NotVisible", "Delayed")
        wanted: list[Any] = [f"ApproximateNumberOfMessages{name}" for name in names]
        try:
            url = queue_url(self.clients, f"{self.stack}-{lane}")
            answer = self.clients.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=wanted)
        except (BotoCoreError, ClientError) as error:
            raise Unavailable(f"lane '{lane}' does not say how deep it is: {error}") from None
        return sum(int(answer["Attributes"][name]) for name in wanted)

    def _send(self, sqs: SQSClient, lane: str, messages: Sequence[JobMessage]) -> int:
        from botocore.exceptions import BotoCoreError, ClientError

        entries: list[Any] = [_entry(place, message) for place, message in enumerate(messages)]
        try:
            url = queue_url(self.clients, f"{self.stack}-{lane}")
            answer = sqs.send_message_batch(QueueUrl=url, Entries=entries)
        except (BotoCoreError, ClientError) as error:
            raise Unavailable(f"lane '{lane}' takes no messages: {error}") from None
        return len(answer.get("Successful", []))


def _calls(messages: Iterable[JobMessage]) -> Iterator[tuple[str, list[JobMessage]]]:
    by_lane: dict[str, list[JobMessage]] = {}
    for message in messages:
        by_lane.setdefault(message.lane, []).append(message)
    for lane, found in by_lane.items():
        for start in range(0, len(found), CALL):
            yield lane, found[start : start + CALL]


def _entry(place: int, message: JobMessage) -> dict[str, Any]:
    return {
        "Id": str(place),
        "MessageBody": json.dumps({"job_id": message.job_id, "job_type": message.job_type}),
        "MessageGroupId": message.group,
        "DelaySeconds": min(max(0, message.delay_seconds), LONGEST_DELAY_SECONDS),
    }
