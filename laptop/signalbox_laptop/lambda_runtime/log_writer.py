"""Bring log events to CloudWatch Logs, in batches, from one thread: no invocation ever waits for its log.

When functions write faster than the log accepts, events are dropped and counted, and the stream says how many, as
Lambda's platform.logsDropped does.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from mypy_boto3_logs import CloudWatchLogsClient

_log = logging.getLogger(__name__)

# PutLogEvents takes at most 10,000 events and 1,048,576 bytes; each event counts 26 more than its message.
_EVENTS_A_BATCH = 10_000
_BYTES_A_BATCH = 1_048_576
_EVENT_OVERHEAD = 26
_LONGEST_MESSAGE = 262_144 - _EVENT_OVERHEAD
# A process that floods its log fills no more memory than this.
_MOST_WAITING = 200_000
# Wait this long, so that lines that arrive together are sent together.
_GATHER_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class LogEvent:
    group: str
    stream: str
    at_ms: int
    message: str

    @property
    def place(self) -> tuple[str, str]:
        return self.group, self.stream


class LogWriter:
    """Own the queue of events and the thread that empties it."""

    def __init__(self, logs: CloudWatchLogsClient) -> None:
        self._logs = logs
        self._changed = threading.Condition()
        self._waiting: list[LogEvent] = []
        self._dropped: dict[tuple[str, str], int] = {}
        self._appended = 0
        self._in_hand = 0
        self._written = 0
        self._hurried = False
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def append(self, group: str, stream: str, at_ms: int, message: str) -> None:
        event = LogEvent(group, stream, at_ms, message[:_LONGEST_MESSAGE])
        with self._changed:
            if len(self._waiting) >= _MOST_WAITING:
                self._dropped[event.place] = self._dropped.get(event.place, 0) + 1
                return
            self._waiting.append(event)
            self._appended += 1
            if len(self._waiting) == 1:
                self._changed.notify_all()

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until everything appended so far is written; return False if the time-out passes first."""
        with self._changed:
            target = self._appended
            self._hurried = True
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._written >= target, timeout)

    def stop(self) -> None:
        """Write what waits, then end."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        while events := self._take():
            for batch in _batches(events):
                self._put(batch)

    def _take(self) -> list[LogEvent]:
        """Wait for events and return them; return none only at the end."""
        with self._changed:
            self._written += self._in_hand
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._waiting or self._stopping)
            self._changed.wait_for(lambda: self._hurried or self._stopping, _GATHER_SECONDS)
            events, self._waiting = self._waiting, []
            self._in_hand, self._hurried = len(events), False
            notices, self._dropped = _notices(self._dropped), {}
            return events + notices

    def _put(self, batch: list[LogEvent]) -> None:
        try:
            self._put_or_create(batch)
        except (BotoCoreError, ClientError) as error:
            group, stream = batch[0].place
            _log.warning("log.lost group=%s stream=%s events=%d error=%s", group, stream, len(batch), error)

    def _put_or_create(self, batch: list[LogEvent]) -> None:
        try:
            self._put_events(batch)
        except self._logs.exceptions.ResourceNotFoundException:
            self._create(*batch[0].place)
            self._put_events(batch)

    def _put_events(self, batch: list[LogEvent]) -> None:
        group, stream = batch[0].place
        self._logs.put_log_events(
            logGroupName=group,
            logStreamName=stream,
            logEvents=[{"timestamp": event.at_ms, "message": event.message} for event in batch],
        )

    def _create(self, group: str, stream: str) -> None:
        exists = self._logs.exceptions.ResourceAlreadyExistsException
        with suppress(exists):
            self._logs.create_log_group(logGroupName=group)
        with suppress(exists):
            self._logs.create_log_stream(logGroupName=group, logStreamName=stream)


def _notices(dropped: dict[tuple[str, str], int]) -> list[LogEvent]:
    now = time.time_ns() // 1_000_000
    return [
        LogEvent(
            group,
            stream,
            now,
            json.dumps({"type": "platform.logsDropped", "record": {"droppedRecords": count}}),
        )
        for (group, stream), count in dropped.items()
    ]


def _batches(events: list[LogEvent]) -> Iterator[list[LogEvent]]:
    """Yield batches of one stream each, in order of time, within the limits of one PutLogEvents."""
    ordered = sorted(events, key=lambda event: (event.place, event.at_ms))
    for _, of_stream in groupby(ordered, key=lambda event: event.place):
        batch: list[LogEvent] = []
        size = 0
        for event in of_stream:
            weight = len(event.message.encode()) + _EVENT_OVERHEAD
            if batch and (len(batch) == _EVENTS_A_BATCH or size + weight > _BYTES_A_BATCH):
                yield batch
                batch, size = [], 0
            batch.append(event)
            size += weight
        yield batch
