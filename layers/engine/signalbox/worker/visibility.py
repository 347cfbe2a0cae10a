"""Bring messages back soon that found no database: by themselves they stay hidden for most of an hour.

Each time they come, they wait twice as long as before. So a long outage costs few invocations, and few of the receives
after which a lane gives a message up. Nothing is raised: messages that SQS was not called for come back all the same.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from signalbox.aws.clients import Clients
from signalbox.aws.sqs import Entry, call_in_batches
from signalbox.errors import Unavailable
from signalbox.runtime.log import Logger

FIRST_SECONDS, LONGEST_SECONDS = 30, 900


def bring_back(clients: Clients, event: Any, ends_at: float, log: Logger) -> None:
    """Show the messages of this event again soon, as far as there is time for it, by the monotonic clock."""
    entries: dict[str, list[Entry]] = {}
    for record in event["Records"]:
        if "receiptHandle" in record:  # an event that was written by hand has none
            entries.setdefault(str(record["eventSourceARN"]).rpartition(":")[2], []).append(_entry(record))
    try:
        shown = call_in_batches(
            clients, "change_message_visibility_batch", entries, has_time=lambda: time.monotonic() < ends_at
        )
    except Unavailable as error:
        log.warning("messages.not_brought_back", extra={"error": str(error)})
    else:
        log.info("messages.brought_back", extra={"number": shown})


def wait_of(receives: int) -> int:
    """Return how many seconds to hide a message that has been received this often."""
    return min(FIRST_SECONDS << min(max(receives, 1) - 1, 16), LONGEST_SECONDS)


def _entry(record: Mapping[str, Any]) -> Entry:
    receives = int(record.get("attributes", {}).get("ApproximateReceiveCount", 1))
    return {"ReceiptHandle": record["receiptHandle"], "VisibilityTimeout": wait_of(receives)}
