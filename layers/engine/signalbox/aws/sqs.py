"""Call SQS in batches: ten entries a call where their size allows, and a few calls at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, Literal, Protocol

from signalbox.aws.clients import Clients
from signalbox.aws.errors import unavailable
from signalbox.errors import Unavailable

BATCH = 10  # entries that SQS takes in one call
BATCH_BYTES = 2**20
CALLS_AT_ONCE = 8
TRIES = 4

Entry = dict[str, Any]
Call = Literal["send_message_batch", "change_message_visibility_batch"]


class QueueMessage(Protocol):
    """Type a pydantic model that says in which of the queue's fair groups it is."""

    def model_dump_json(self) -> str: ...

    def group(self) -> str: ...


def publish(clients: Clients, queue: str, messages: Sequence[QueueMessage]) -> int:
    """Send all of them to the queue, or raise; return how many that was.

    Callers send before they commit: if some can't be sent, nothing is lost, and the others are sent again by the next
    run. So receivers see each message at least once.
    """
    entries = [{"MessageBody": message.model_dump_json(), "MessageGroupId": message.group()} for message in messages]
    if left := len(entries) - call_in_batches(clients, "send_message_batch", {queue: entries}, tries=TRIES):
        raise Unavailable(
            f"{left} of {len(messages)} messages could not be sent to queue '{queue}': they are sent again later"
        )
    return len(messages)


def call_in_batches(
    clients: Clients,
    call: Call,
    entries: Mapping[str, Sequence[Entry]],
    *,
    tries: int = 1,
    has_time: Callable[[], bool] = lambda: True,
) -> int:
    """Make a call with the entries of each queue; return how many SQS took, or raise Unavailable if unreachable.

    Entries that SQS refuses are tried again, if there is another try.
    """
    batches = [(queue, batch) for queue, some in entries.items() for batch in _batches(some)]
    sqs = clients.sqs  # made here, since the threads share it

    def take(one: tuple[str, list[Entry]]) -> int:
        queue, batch = one
        with unavailable(f"queue {queue} does not accept messages"):
            return _take(getattr(sqs, call), queue_url(clients, queue), batch, tries) if has_time() else 0

    if len(batches) == 1:
        return take(batches[0])
    with ThreadPoolExecutor(CALLS_AT_ONCE) as threads:
        return sum(threads.map(take, batches))


def _take(call: Callable[..., Any], url: str, batch: list[Entry], tries: int) -> int:
    left = [{"Id": str(place), **entry} for place, entry in enumerate(batch)]
    for attempt in range(tries):
        if attempt:
            time.sleep(0.1 * 2 ** (attempt - 1))
        refused = {failed["Id"] for failed in call(QueueUrl=url, Entries=left).get("Failed", [])}
        left = [entry for entry in left if entry["Id"] in refused]
        if not left:
            break
    return len(batch) - len(left)


@cache
def queue_url(clients: Clients, name: str) -> str:
    """Return a queue's address. It is asked for once per environment, so the template needs no variable for it."""
    return clients.sqs.get_queue_url(QueueName=name)["QueueUrl"]


def _batches(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    batch: list[Entry] = []
    size = 0
    for entry in entries:
        weight = len(entry.get("MessageBody", "").encode())
        if len(batch) == BATCH or (batch and size + weight > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += weight
    if batch:
        yield batch
