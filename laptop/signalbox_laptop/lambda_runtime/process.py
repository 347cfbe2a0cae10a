"""Run a function in one process: Lambda's own Python runtime client, with its Runtime API and its output.

It is started in a process group of its own, and the whole group is killed with it: nothing that a handler started
outlives its environment.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from signalbox_laptop.lambda_runtime import start_runtime
from signalbox_laptop.lambda_runtime.output import Output, Sink
from signalbox_laptop.lambda_runtime.runtime_api import Exited, Offer, RuntimeApi, Signal

# -P: a function must not import from the script's own folder.
OURS = (sys.executable, "-P", start_runtime.__file__)


class Runtime:
    """Own the process, from its start to the end of its group."""

    def __init__(
        self, handler: str, folder: Path, variables: dict[str, str], sink: Sink, command: Sequence[str] = OURS
    ) -> None:
        self._signals: queue.SimpleQueue[Signal] = queue.SimpleQueue()
        self._api = RuntimeApi(self._signals.put)
        self._output = Output(sink)
        self._process = self._spawn([*command, handler], folder, variables)
        self._output.start()
        self._memory_mb = 0
        self._closing = threading.Lock()
        self._closed = False
        self._watcher = threading.Thread(target=self._watch, name="function-watcher", daemon=True)
        self._watcher.start()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def offer_taken(self) -> bool:
        return self._api.taken.is_set()

    def offer(self, offer: Offer) -> None:
        self._api.offer(offer)

    def signal(self, timeout: float) -> Signal | None:
        """Return the process's next signal, or None if none comes in time."""
        with suppress(queue.Empty):
            return self._signals.get(timeout=max(timeout, 0))
        return None

    def freeze(self) -> None:
        """Stop the process and what it has started, as Lambda does between two invocations."""
        self._signal_group(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal_group(signal.SIGCONT)

    def drain(self) -> None:
        self._output.drain()

    def memory_mb(self) -> int:
        """Return the most memory ever seen."""
        with suppress(psutil.Error):
            now = psutil.Process(self._process.pid).memory_info().rss
            self._memory_mb = max(self._memory_mb, now >> 20)
        return self._memory_mb

    def close(self) -> None:
        """Kill the process. A second call, from another thread, waits for the first."""
        with self._closing:
            if self._closed:
                return
            self._kill_group()
            self._watcher.join()
            self._api.close()
            self._output.close()
            self._closed = True

    def _spawn(self, command: Sequence[str], folder: Path, variables: dict[str, str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            cwd=folder,
            env={
                **variables,
                "AWS_LAMBDA_RUNTIME_API": self._api.address,
                "_LAMBDA_TELEMETRY_LOG_FD": str(self._output.log),
            },
            stdin=subprocess.DEVNULL,
            stdout=self._output.stdout,
            stderr=self._output.stdout,
            pass_fds=(self._output.log,),
            start_new_session=True,
        )

    def _watch(self) -> None:
        status = self._process.wait()
        # What the handler started may still run, and write. The number can't have been given to another group: it is
        # taken as long as one member lives, and otherwise it was free for an instant only.
        self._kill_group()
        self._output.drain()
        self._signals.put(Exited(_how(status)))

    def _kill_group(self) -> None:
        self._signal_group(signal.SIGKILL)

    def _signal_group(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def _how(status: int) -> str:
    """Return Lambda's sentence for an exit."""
    if status == 0:
        return "Runtime exited without providing a reason"
    if status > 0:
        return f"Runtime exited with error: exit status {status}"
    return f"Runtime exited with error: signal: {(signal.strsignal(-status) or str(-status)).lower()}"
