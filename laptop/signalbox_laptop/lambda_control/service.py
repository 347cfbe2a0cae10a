"""Run the laptop's Lambda service: made from settings, started, asked to invoke, stopped.

`invoke` waits for the function; `enqueue` accepts an event and returns. Nothing survives `stop`: no process, no thread
at work, no temporary file.
"""

from __future__ import annotations

import json
import resource
import time
from typing import Any

from signalbox_laptop.event_sources.mappings import Mappings
from signalbox_laptop.lambda_api.errors import ContentInvalid, RequestTooLarge
from signalbox_laptop.lambda_control.activity import Activity
from signalbox_laptop.lambda_control.async_queue import AsynchronousQueue, Event
from signalbox_laptop.lambda_control.clients import connect
from signalbox_laptop.lambda_control.concurrency import Concurrency
from signalbox_laptop.lambda_control.destinations import FailureDestinations
from signalbox_laptop.lambda_control.fleet import Fleet
from signalbox_laptop.lambda_control.function import Function
from signalbox_laptop.lambda_control.functions import Functions
from signalbox_laptop.lambda_control.settings import ServiceSettings
from signalbox_laptop.lambda_runtime.invocation import LambdaInvocation, Result
from signalbox_laptop.lambda_runtime.log_writer import LogWriter
from signalbox_laptop.lambda_runtime.packages import Artefacts

LARGEST_SYNCHRONOUS = 6_291_456
LARGEST_ASYNCHRONOUS = 1_048_576
# How often to look again at a queue with messages while waiting for idle.
_LOOK_AGAIN_SECONDS = 0.05
_FILES = 4096


class LambdaService:
    """Own the environments, the event queue, the pollers and the log."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._clients = clients = connect(settings)
        self._activity = Activity()
        self._functions = Functions(clients, settings)
        self._concurrency = Concurrency(settings.account_concurrency)
        self._log = LogWriter(clients.logs)
        self._fleet = Fleet(Artefacts(clients, settings.home), settings, self._log)
        self._destinations = FailureDestinations(clients.sqs)
        self._events = AsynchronousQueue(settings, self._activity, self._destinations, self.function, self._run)
        self._mappings = Mappings(clients, settings, self._activity, self.invoke)

    def start(self) -> None:
        _allow_many_files()
        self._log.start()
        self._fleet.start()
        self._events.start()
        self._mappings.start()

    def stop(self) -> None:
        """Kill what runs, drop what waits, write the log. Messages in hand stay in their queues."""
        self._mappings.stop()
        self._events.stop()
        self._fleet.stop()
        self._events.join()
        self._mappings.join()
        self._log.stop()
        self._clients.close()

    def function(self, name: str) -> Function:
        """Return the function under a name, partial ARN or ARN, or raise FunctionUnknown."""
        return self._functions.function(name)

    def invoke(self, name: str, payload: bytes) -> Result:
        """Run a function and wait for it; raise a LambdaFault if Lambda would refuse the call."""
        with self._activity.one():
            function = self._functions.function(name)
            content = checked_payload(payload, LARGEST_SYNCHRONOUS)
            return self._run(function, LambdaInvocation(payload=content))

    def enqueue(self, name: str, payload: bytes) -> str:
        """Accept an event for a function and return its request id; raise a LambdaFault as `invoke` does."""
        self._functions.function(name)
        content = checked_payload(payload, LARGEST_ASYNCHRONOUS)
        invocation = LambdaInvocation(payload=content)
        self._events.put(Event(function_name=name, invocation=invocation, accepted_at=time.monotonic()))
        return invocation.request_id

    def refresh(self) -> None:
        """Forget what was read before, because something was deployed."""
        self._functions.forget()
        self._mappings.ask()

    def idle(self, timeout: float) -> bool:
        """Wait until nothing runs, no event waits or is to be retried, no mapped queue holds visible messages, and the
        logs are written. Return False if the time-out passes first."""
        deadline = time.monotonic() + timeout
        self._mappings.refresh()
        while self._activity.wait(max(deadline - time.monotonic(), 0)):
            if self._is_quiet():
                return self._log.flush(max(deadline - time.monotonic(), 0.1))
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOOK_AGAIN_SECONDS)
        return False

    def status(self) -> dict[str, Any]:
        """Return numbers for a person: what runs and what waits."""
        return {
            "under_way": self._activity.under_way,
            "running": self._concurrency.running(),
            "environments": self._fleet.count(),
            "events_waiting": self._events.waiting(),
            "mappings": self._mappings.count(),
            "destinations_failed": self._destinations.failed,
        }

    def _is_quiet(self) -> bool:
        """Say whether nothing is in progress, nothing waits in a queue, and nothing began during the look."""
        begun = self._activity.begun
        return not self._mappings.waiting() and not self._activity.under_way and self._activity.begun == begun

    def _run(self, function: Function, invocation: LambdaInvocation) -> Result:
        with self._concurrency.one(function):
            return self._fleet.run(function, invocation)


def _allow_many_files() -> None:
    """Raise the limit of open files: an environment takes about ten, and some systems allow a process only 256."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < _FILES:
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (_FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard), hard)
        )


def checked_payload(payload: bytes, limit: int) -> bytes:
    """Return the payload if Lambda would take it; an empty one means an empty object."""
    if len(payload) > limit:
        raise RequestTooLarge(f"Request must be smaller than {limit} bytes for the InvokeFunction operation")
    try:
        json.loads(payload or b"{}")
    except ValueError as error:
        raise ContentInvalid(f"Could not parse request body into json: {error}") from None
    return payload or b"{}"
