"""Bring one queue's messages to one function, as an event source mapping of Lambda does.

A batch that succeeds is deleted, one that fails returns to the queue when its visibility time-out has passed, and one
that was throttled returns soon. A message is never deleted before the function has answered for it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from signalbox_laptop.event_sources.mapping import Mapping
from signalbox_laptop.event_sources.sqs_event import event_of, failed_ids
from signalbox_laptop.lambda_api.errors import LambdaFault, Throttled

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import (
        ChangeMessageVisibilityBatchRequestEntryTypeDef,
        DeleteMessageBatchRequestEntryTypeDef,
        MessageTypeDef,
    )

    from signalbox_laptop.lambda_control.activity import Activity
    from signalbox_laptop.lambda_control.settings import ServiceSettings
    from signalbox_laptop.lambda_runtime.invocation import Result

_log = logging.getLogger(__name__)

# The most messages that SQS gives or takes in one call.
_MOST_AT_ONCE = 10
# The wait of one receive: a stopped mapping notices after that, and moto sees messages that become visible again only
# between two waits.
_LONG_POLL_SECONDS = 1
_SHORT_POLL_SECONDS = 0.1
# A synchronous payload is limited to 6 MB; bodies are escaped in it.
_BYTES_A_BATCH = 4_000_000
_LONGEST_THROTTLE_FACTOR = 60
_PAUSE_AFTER_FAULT = 1.0


class Poller:
    """Run one mapping: a thread that receives, and as many threads that invoke as it may have batches at once."""

    def __init__(
        self,
        mapping: Mapping,
        sqs: SQSClient,
        settings: ServiceSettings,
        activity: Activity,
        invoke: Callable[[str, bytes], Result],
    ) -> None:
        self.mapping = mapping
        self._sqs = sqs
        self._throttle_delay = settings.throttle_delay
        self._activity = activity
        self._invoke = invoke
        concurrency = mapping.concurrency(settings.mapping_concurrency)
        self._places = threading.Semaphore(concurrency)
        self._workers = ThreadPoolExecutor(concurrency, thread_name_prefix=f"mapping-{mapping.queue_name}")
        self._stopping = threading.Event()
        self._received = threading.Condition()
        self._receives_begun = self._receives_ended = 0
        self._throttles = 0
        self._queue_url = ""
        self._thread = threading.Thread(target=self._run, name=f"poller-{mapping.queue_name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Take no more messages; finish those in hand."""
        self._stopping.set()
        self._places.release()

    def join(self) -> None:
        self._thread.join()
        self._workers.shutdown()

    def waiting(self) -> bool:
        """Say whether messages could be taken right now. Delayed ones, and failed ones not yet visible again, do not
        count."""
        try:
            visible, invisible = self._backlog()
        except (BotoCoreError, ClientError):
            return False
        if not visible and invisible:
            # A receive in progress may carry some of them, and they are in no count yet.
            self._wait_for_receives()
        return bool(visible)

    def _backlog(self) -> tuple[int, int]:
        answer = self._sqs.get_queue_attributes(QueueUrl=self._url(), AttributeNames=["All"])["Attributes"]
        return int(answer["ApproximateNumberOfMessages"]), int(answer["ApproximateNumberOfMessagesNotVisible"])

    def _wait_for_receives(self) -> None:
        with self._received:
            begun = self._receives_begun
            self._received.wait_for(lambda: self._receives_ended >= begun, _LONG_POLL_SECONDS * 2)

    def _run(self) -> None:
        while self._place():
            batch = self._next_batch()
            if batch:
                self._workers.submit(self._work, batch)
            else:
                self._places.release()

    def _place(self) -> bool:
        """Wait for a place among the batches at once; return False at the end."""
        self._places.acquire()
        return not self._stopping.is_set()

    def _next_batch(self) -> list[MessageTypeDef]:
        try:
            batch = self._receive(self.mapping.batch_size, _LONG_POLL_SECONDS, [])
            return self._gather(batch) if batch and self.mapping.window else batch
        except (BotoCoreError, ClientError) as error:
            if not self._stopping.is_set():
                _log.warning("mapping.receive_failed queue=%s error=%s", self.mapping.queue_name, error)
                self._stopping.wait(_PAUSE_AFTER_FAULT)
            return []

    def _gather(self, batch: list[MessageTypeDef]) -> list[MessageTypeDef]:
        """Add to a batch until it is full or the window closes."""
        closes = time.monotonic() + self.mapping.window
        while (left := closes - time.monotonic()) > 0 and self._has_room(batch) and not self._stopping.is_set():
            wait = _LONG_POLL_SECONDS if left >= _LONG_POLL_SECONDS else 0
            more = self._receive(self.mapping.batch_size - len(batch), wait, batch)
            if not more and not wait:
                # SQS waits in whole seconds; wait out the rest of the window here.
                self._stopping.wait(min(left, _SHORT_POLL_SECONDS))
            batch += more
        return batch

    def _has_room(self, batch: Sequence[MessageTypeDef]) -> bool:
        size = sum(len(message["Body"]) for message in batch)
        return len(batch) < self.mapping.batch_size and size < _BYTES_A_BATCH

    def _receive(self, count: int, wait: int, batch: Sequence[MessageTypeDef]) -> list[MessageTypeDef]:
        """Receive some messages; the first of a batch counts it as in progress."""
        with self._received:
            self._receives_begun += 1
        try:
            answer = self._sqs.receive_message(
                QueueUrl=self._url(),
                MaxNumberOfMessages=min(count, _MOST_AT_ONCE),
                WaitTimeSeconds=wait,
                MessageSystemAttributeNames=["All"],
                MessageAttributeNames=["All"],
            )
            messages = answer.get("Messages", [])
            if messages and not batch:
                self._activity.begin()
            return messages
        finally:
            with self._received:
                self._receives_ended += 1
                self._received.notify_all()

    def _url(self) -> str:
        if not self._queue_url:
            self._queue_url = self._sqs.get_queue_url(QueueName=self.mapping.queue_name)["QueueUrl"]
        return self._queue_url

    def _work(self, batch: list[MessageTypeDef]) -> None:
        try:
            self._bring(batch)
        except Throttled:
            self._return_soon(batch)
        except (LambdaFault, BotoCoreError, ClientError) as error:
            if not self._stopping.is_set():
                _log.warning("mapping.batch_failed queue=%s error=%s", self.mapping.queue_name, error)
        finally:
            self._places.release()
            self._activity.end()

    def _bring(self, batch: list[MessageTypeDef]) -> None:
        mapping = self.mapping
        result = self._invoke(mapping.function_arn, event_of(batch, mapping.queue_arn, mapping.region))
        self._throttles = 0
        failed = failed_ids(result, [message["MessageId"] for message in batch], partial=mapping.partial)
        self._delete([message for message in batch if message["MessageId"] not in failed])

    def _delete(self, messages: Sequence[MessageTypeDef]) -> None:
        for some in _tens(messages):
            entries: list[DeleteMessageBatchRequestEntryTypeDef] = [
                {"Id": str(index), "ReceiptHandle": message["ReceiptHandle"]} for index, message in enumerate(some)
            ]
            self._sqs.delete_message_batch(QueueUrl=self._url(), Entries=entries)

    def _return_soon(self, batch: Sequence[MessageTypeDef]) -> None:
        """Return a batch to the queue, and take no other in its place for as long: each receive counts towards the
        dead-letter queue."""
        delay = self._throttle_delay * min(2**self._throttles, _LONGEST_THROTTLE_FACTOR)
        self._throttles += 1
        for some in _tens(batch):
            entries: list[ChangeMessageVisibilityBatchRequestEntryTypeDef] = [
                {"Id": str(index), "ReceiptHandle": message["ReceiptHandle"], "VisibilityTimeout": int(delay)}
                for index, message in enumerate(some)
            ]
            self._sqs.change_message_visibility_batch(QueueUrl=self._url(), Entries=entries)
        self._stopping.wait(delay)


def _tens(messages: Sequence[MessageTypeDef]) -> Collection[Sequence[MessageTypeDef]]:
    return [messages[start : start + _MOST_AT_ONCE] for start in range(0, len(messages), _MOST_AT_ONCE)]
