"""Sends messages to a queue: ten a call where their size allows, a few calls at once, and what was refused for a moment
once more.

A message counts as sent only when SQS says so. Callers send before they commit: what could not be sent is an error,
nothing is lost, and what did go out goes out again with the next run. So receivers see each message at least once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from signalbox.aws.clients import Clients
from signalbox.errors import Unavailable

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

CALL = 10  # as many as SQS takes
CALL_BYTES = 2**20  # as much as it takes in one call
AT_ONCE = 4
TRIES = 4


class QueueMessage(Protocol):
    """What is sent: a pydantic model that says in which of the queue's fair groups it is."""

    def model_dump_json(self) -> str: ...

    def group(self) -> str: ...


def publish(clients: Clients, queue: str, messages: Sequence[QueueMessage]) -> int:
    """Sends all of them to the queue of this name, or raises; answers how many that was."""
    from botocore.exceptions import BotoCoreError, ClientError

    if not messages:
        return 0
    try:
        url = queue_url(clients, queue)
    except (BotoCoreError, ClientError) as error:
        raise Unavailable(f"queue {queue} can't be found: {error}") from None
    with ThreadPoolExecutor(AT_ONCE) as threads:
        left = sum(threads.map(lambda call: _send(clients.sqs, url, call), _calls(messages)))
    if left:
        raise Unavailable(f"{left} of {len(messages)} messages could not be sent to queue '{queue}': they go out again")
    return len(messages)


@cache
def queue_url(clients: Clients, name: str) -> str:
    """Asked once an execution environment, so that the template needs no variable for each."""
    return clients.sqs.get_queue_url(QueueName=name)["QueueUrl"]


def _calls(messages: Sequence[QueueMessage]) -> Iterator[list[dict[str, Any]]]:
    entries: list[dict[str, Any]] = []
    size = 0
    for message in messages:
        body = message.model_dump_json()
        weight = len(body.encode())
        if len(entries) == CALL or (entries and size + weight > CALL_BYTES):
            yield entries
            entries, size = [], 0
        entries.append({"Id": str(len(entries)), "MessageBody": body, "MessageGroupId": message.group()})
        size += weight
    yield entries


def _send(sqs: SQSClient, queue_url: str, entries: list[dict[str, Any]]) -> int:
    """How many of the entries SQS did not take, after the last try."""
    from botocore.exceptions import BotoCoreError, ClientError

    for attempt in range(TRIES):
        try:
            answer = sqs.send_message_batch(QueueUrl=queue_url, Entries=entries)  # type: ignore[arg-type]
        except (BotoCoreError, ClientError) as error:
            raise Unavailable(f"queue {queue_url} takes no messages: {error}") from None
        refused = {failed["Id"] for failed in answer.get("Failed", [])}
        entries = [entry for entry in entries if entry["Id"] in refused]
        if not entries:
            return 0
        time.sleep(0.1 * 2**attempt)
    return len(entries)
