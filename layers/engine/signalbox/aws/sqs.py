"""Sends messages to a queue: ten a call where their size allows, a few calls at once, and what was refused for a moment
once more.

A message counts as sent only when SQS says so. Callers send before they commit: what could not be sent is an error,
nothing is lost, and what did go out goes out again with the next run. So receivers see each message at least once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

from signalbox.errors import SettingsRefused, Unavailable

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

CALL = 10  # as many as SQS takes
CALL_BYTES = 2**20  # as much as it takes in one call
AT_ONCE = 4
TRIES = 4


class Message(Protocol):
    """What is sent: a pydantic model that says in which of the queue's fair groups it is."""

    def model_dump_json(self) -> str: ...

    def group(self) -> str: ...


def publish(sqs: SQSClient, queue_url: str, messages: Sequence[Message], *, queue: str) -> int:
    """Sends all of them, or raises; answers how many that was."""
    if not messages:
        return 0
    if not queue_url:
        raise SettingsRefused(f"there is no queue '{queue}' to send to: set {queue}_queue_url in the pack's settings")
    with ThreadPoolExecutor(AT_ONCE) as threads:
        left = sum(threads.map(lambda call: _send(sqs, queue_url, call), _calls(messages)))
    if left:
        raise Unavailable(f"{left} of {len(messages)} messages could not be sent to queue '{queue}': they go out again")
    return len(messages)


def _calls(messages: Sequence[Message]) -> Iterator[list[dict[str, Any]]]:
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
