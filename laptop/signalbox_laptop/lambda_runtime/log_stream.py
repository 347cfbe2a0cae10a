"""Write one execution environment's log: a stream in CloudWatch Logs, and the tail that an invocation returns."""

from __future__ import annotations

import threading
import time
import uuid
from collections import deque
from datetime import UTC, datetime

from signalbox_laptop.lambda_control.function import Function
from signalbox_laptop.lambda_runtime.log_writer import LogWriter

# The size of X-Amz-Log-Result before base64.
TAIL_BYTES = 4096


class LogStream:
    """Take an environment's lines, from the thread that invokes and from the one that reads the process."""

    def __init__(self, function: Function, writer: LogWriter) -> None:
        self._group = function.logging.group
        self._writer = writer
        self._lock = threading.Lock()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        today = datetime.now(UTC).strftime("%Y/%m/%d")
        self.name = f"{today}/[{function.version}]{uuid.uuid4().hex}"

    def write(self, text: str, at_ms: int | None = None) -> None:
        # CloudWatch refuses an event without a message.
        if not text:
            return
        self._writer.append(self._group, self.name, at_ms or time.time_ns() // 1_000_000, text)
        with self._lock:
            self._remember(text.encode() + b"\n")

    def begin(self) -> None:
        """Begin the tail of a new invocation."""
        with self._lock:
            self._tail.clear()
            self._tail_size = 0

    def tail(self) -> bytes:
        with self._lock:
            return b"".join(self._tail)[-TAIL_BYTES:]

    def _remember(self, line: bytes) -> None:
        self._tail.append(line[-TAIL_BYTES:])
        self._tail_size += len(self._tail[-1])
        while self._tail_size - len(self._tail[0]) >= TAIL_BYTES:
            self._tail_size -= len(self._tail.popleft())
