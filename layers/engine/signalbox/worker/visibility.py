"""Messages of a batch that found no database come back soon: by themselves they stay hidden for most of an hour.

Each time they come, they wait twice as long as the time before, so that a long outage costs few invocations, and few
of the receives after which a lane gives a message up. Never raises: what SQS does not hear of comes back all the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from signalbox.aws.clients import Clients
from signalbox.aws.sqs import queue_url
from signalbox.publish.lanes import AT_ONCE, CALL
from signalbox.runtime.log import Logger

FIRST_SECONDS, LONGEST_SECONDS = 30, 900


def bring_back(clients: Clients, event: Any, ends_at: float, log: Logger) -> None:
    """The messages of this event, as far as there is time for it, by the monotonic clock."""

    def call(queue: str, records: Sequence[Mapping[str, Any]]) -> int:
        return _show_later(clients, queue, records, log) if time.monotonic() < ends_at else 0

    with ThreadPoolExecutor(AT_ONCE) as threads:
        shown = sum(threads.map(lambda one: call(*one), list(_calls(event["Records"]))))
    log.info("messages.brought_back", extra={"number": shown})


def wait_of(receives: int) -> int:
    """For how many seconds a message is hidden that has come so often."""
    return min(FIRST_SECONDS << min(max(receives, 1) - 1, 16), LONGEST_SECONDS)


def _calls(records: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    by_queue: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        if "receiptHandle" in record:  # an event that was written by hand has none
            by_queue.setdefault(str(record["eventSourceARN"]).rpartition(":")[2], []).append(record)
    for queue, found in by_queue.items():
        for start in range(0, len(found), CALL):
            yield queue, found[start : start + CALL]


def _show_later(clients: Clients, queue: str, records: Sequence[Mapping[str, Any]], log: Logger) -> int:
    """How many of them SQS took it for."""
    from botocore.exceptions import BotoCoreError, ClientError

    entries: list[Any] = [_entry(place, record) for place, record in enumerate(records)]
    try:
        url = queue_url(clients, queue)
        answer = clients.sqs.change_message_visibility_batch(QueueUrl=url, Entries=entries)
    except (BotoCoreError, ClientError) as error:
        log.warning("messages.not_brought_back", extra={"queue": queue, "number": len(records), "error": str(error)})
        return 0
    return len(answer.get("Successful", []))


def _entry(place: int, record: Mapping[str, Any]) -> dict[str, Any]:
    receives = int(record.get("attributes", {}).get("ApproximateReceiveCount", 1))
    return {"Id": str(place), "ReceiptHandle": record["receiptHandle"], "VisibilityTimeout": wait_of(receives)}
