"""Run one execution environment: made for a function's revision and initialised once. It serves one invocation at a
time until it breaks, goes unused or is out of date.
"""

from __future__ import annotations

import shutil
import threading
import time
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from signalbox_laptop.lambda_runtime import platform_log
from signalbox_laptop.lambda_runtime.invocation import InvocationResult, LambdaInvocation, Result
from signalbox_laptop.lambda_runtime.log_stream import LogStream
from signalbox_laptop.lambda_runtime.platform_log import Measured
from signalbox_laptop.lambda_runtime.process import Runtime
from signalbox_laptop.lambda_runtime.runtime_api import Exited, Failed, InitFailed, Offer, Responded
from signalbox_laptop.lambda_runtime.variables import Sandbox, variables_of

if TYPE_CHECKING:
    from signalbox_laptop.lambda_control.function import Function
    from signalbox_laptop.lambda_control.settings import ServiceSettings
    from signalbox_laptop.lambda_runtime.log_writer import LogWriter
    from signalbox_laptop.lambda_runtime.packages import Artefact
    from signalbox_laptop.lambda_runtime.runtime_api import Signal


class ProcessGone(Exception):
    """The process ended while it was unused; the invocation has not reached it, and may go to another."""


class Environment:
    """Own a process and its log stream. One thread at a time uses it."""

    def __init__(self, function: Function, artefact: Artefact, settings: ServiceSettings, writer: LogWriter) -> None:
        self.function = function
        self.idle_since = time.monotonic()
        self._init_seconds = settings.init_seconds
        self._log = LogStream(function, writer)
        folder = settings.home / "tmp" / uuid.uuid4().hex
        self._sandbox = Sandbox(artefact=artefact, log_stream=self._log.name, folder=folder)
        self._variables = variables_of(function, self._sandbox, settings)
        folder.mkdir(parents=True)
        # The first signal of the process: None until then, and if it took too long.
        self._first_signal: Signal | None = None
        self._init_ms: float | None = None
        self._fresh = True
        self._broken = False
        self._lock = threading.Lock()
        self._closed = False
        self._born = time.monotonic()
        self._runtime = self._start()

    @property
    def usable(self) -> bool:
        return not self._broken and self._runtime.alive

    def initialise(self) -> None:
        """Wait until the process asks for work, fails, or exceeds Lambda's time for that."""
        self._first_signal = self._runtime.signal(self._init_seconds)
        if self._first_signal is not None:
            self._init_ms = (time.monotonic() - self._born) * 1000

    def run(self, function: Function, invocation: LambdaInvocation) -> Result:
        """Serve one invocation, with the function's configuration at that time. After anything but an answer or an
        error of the handler, the environment is broken."""
        self._log.begin()
        self._runtime.thaw()
        self._say(platform_log.started(self.function, invocation.request_id, _now()))
        began = time.monotonic()
        failure = self._begin(invocation) if self._fresh else None
        outcome = failure or self._serve(function, invocation, began)
        self._broken = self._broken or failure is not None or outcome.status == "timeout"
        result = self._result(invocation, outcome, (time.monotonic() - began) * 1000)
        if not self._broken:
            self._runtime.freeze()  # threads that a handler left behind continue only with the next invocation
        return result

    def close(self) -> None:
        """Kill the process, even one that serves; a thread that waits for it learns that it ended."""
        with self._lock:
            self._closed = self._broken = True
        self._runtime.close()
        shutil.rmtree(self._sandbox.folder, ignore_errors=True)

    def _start(self) -> Runtime:
        self._say(platform_log.init_started(self.function, _now()))
        return Runtime(
            self.function.package.handler, self._sandbox.artefact.task_root, self._variables, self._log.write
        )

    def _begin(self, invocation: LambdaInvocation) -> InvocationResult | None:
        """Return how the initialisation failed, if it did. One that took too long begins again here, as part of the
        invocation, as in Lambda."""
        self._fresh = False
        signal = self._first_signal
        if signal is None:
            self._restart()
            signal = self._runtime.signal(self.function.timeout)
        match signal:
            case InitFailed(body):
                return InvocationResult.reported(body)
            case Exited(how):
                return InvocationResult.exited(invocation.request_id, how)
            case None:
                return InvocationResult.timed_out(invocation.request_id, self.function.timeout)
        return None

    def _restart(self) -> None:
        with self._lock:
            # If closed in the meantime, it must not start again.
            if self._closed:
                raise ProcessGone
            self._runtime.close()
            self._runtime = self._start()

    def _serve(self, function: Function, invocation: LambdaInvocation, began: float) -> InvocationResult:
        deadline = began + self.function.timeout
        deadline_ms = int((time.time() + deadline - time.monotonic()) * 1000)
        self._runtime.offer(Offer(invocation, function.arn, deadline_ms))
        while (left := deadline - time.monotonic()) > 0:
            outcome = self._heard(invocation, left)
            if outcome is not None:
                return outcome
        return InvocationResult.timed_out(invocation.request_id, self.function.timeout)

    def _heard(self, invocation: LambdaInvocation, seconds: float) -> InvocationResult | None:
        """Return the outcome once it is known; ignore what concerns an earlier invocation."""
        match self._runtime.signal(seconds):
            case Responded(request_id, body) if request_id == invocation.request_id:
                return InvocationResult(payload=body)
            case Failed(request_id, body) if request_id == invocation.request_id:
                return InvocationResult.reported(body)
            case Exited(how):
                self._broken = True
                if not self._runtime.offer_taken:
                    raise ProcessGone
                return InvocationResult.exited(invocation.request_id, how)
        return None

    def _result(self, invocation: LambdaInvocation, outcome: InvocationResult, duration_ms: float) -> Result:
        measured = Measured(duration_ms=duration_ms, memory_mb=self._runtime.memory_mb(), init_ms=self._init_ms)
        self._init_ms = None
        self._runtime.drain()
        self._say(platform_log.ended(self.function, invocation.request_id, outcome, measured, _now()))
        return Result(
            request_id=invocation.request_id,
            payload=outcome.payload,
            executed_version=self.function.version,
            function_error=None if outcome.status == "success" else "Unhandled",
            log_tail=self._log.tail(),
        )

    def _say(self, line: str) -> None:
        self._log.write(line)


def _now() -> datetime:
    return datetime.now(UTC)
