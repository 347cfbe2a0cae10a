"""Turn a process's output into log events: its stdout and stderr by lines, its runtime's log by frames.

Lambda's runtime client logs through a pipe of its own, in frames, so that a message of several lines stays one event.
Both pipes are read as they fill, whether an invocation runs or not: a process never waits for its log.
"""

from __future__ import annotations

import os
import selectors
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress

_CHUNK = 65_536
# Enough to empty both pipes; a process that never stops writing can't delay its answer.
_CHUNKS_A_DRAIN = 32
# Cut a line without an end here: CloudWatch takes no more in one event.
_LONGEST_LINE = 262_144
_FRAME_HEADER = 16
_FRAME_MAGIC = b"\xa5\x5a"

# Takes text, and the milliseconds since 1970 if the writer gave them.
Sink = Callable[[str, int | None], None]


class Lines:
    """Split bytes into lines."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> Iterable[str]:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) >= _LONGEST_LINE:
            lines, self._rest = [*lines, self._rest], b""
        # The runtime client separates the lines of one message by carriage returns.
        return [line.decode(errors="replace").rstrip("\r").replace("\r", "\n") for line in lines]

    def rest(self) -> Iterable[str]:
        """Return what came without an end of line."""
        rest, self._rest = self._rest, b""
        return [rest.decode(errors="replace")] if rest else []


class Frames:
    """Split bytes into the runtime client's messages: type (4), length (4), microseconds (8), message."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> Iterable[tuple[str, int]]:
        self._rest += chunk
        while self._rest.startswith(_FRAME_MAGIC) and len(self._rest) >= _FRAME_HEADER:
            length = int.from_bytes(self._rest[4:8], "big")
            end = _FRAME_HEADER + length
            if len(self._rest) < end:
                return
            at_ms = int.from_bytes(self._rest[8:16], "big") // 1000
            message, self._rest = self._rest[_FRAME_HEADER:end], self._rest[end:]
            yield message.decode(errors="replace").rstrip("\n"), at_ms


class Output:
    """Own the two pipes of one process and the thread that reads them."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._lock = threading.Lock()
        self._closed = False
        self._lines, self._frames = Lines(), Frames()
        self._out, self.stdout = os.pipe()
        self._log, self.log = os.pipe()
        self._wake, self._alarm = os.pipe()
        for reading in (self._out, self._log):
            os.set_blocking(reading, False)
        self._thread = threading.Thread(target=self._read, name="function-output", daemon=True)

    def start(self) -> None:
        """Start reading once the process has its ends of the pipes: only its own ends must keep them open."""
        os.close(self.stdout)
        os.close(self.log)
        self._thread.start()

    def drain(self) -> None:
        """Pass on everything written so far, even a line that has not ended."""
        with self._lock:
            # The numbers may be another file's once they are closed.
            if self._closed:
                return
            for _ in range(_CHUNKS_A_DRAIN):
                if not self._pass_on(self._out) and not self._pass_on(self._log):
                    break
            for line in self._lines.rest():
                self._sink(line, None)

    def close(self) -> None:
        """Close after the process's end, without waiting for a grandchild that still holds the pipe."""
        os.close(self._alarm)
        self._thread.join()
        self.drain()
        with self._lock:
            self._closed = True
            for end in (self._out, self._log, self._wake):
                os.close(end)

    def _read(self) -> None:
        with selectors.DefaultSelector() as selector:
            for end in (self._out, self._log, self._wake):
                selector.register(end, selectors.EVENT_READ)
            while True:
                ready = {key.fd for key, _ in selector.select()}
                if self._wake in ready:
                    return
                for end in ready:
                    with self._lock:
                        ended = self._pass_on(end) == b""
                    if ended:
                        selector.unregister(end)

    def _pass_on(self, end: int) -> bytes | None:
        """Pass one chunk from a pipe to the log: empty at its end, None if nothing waits."""
        chunk = None
        with suppress(BlockingIOError):
            chunk = os.read(end, _CHUNK)
        if chunk and end == self._out:
            for line in self._lines.feed(chunk):
                self._sink(line, None)
        elif chunk:
            for message, at_ms in self._frames.feed(chunk):
                self._sink(message, at_ms)
        return chunk
