"""The laptop's Lambda service as one thing: made from settings, started, asked to invoke, stopped.

Whoever calls `invoke` waits for the function; `enqueue` accepts an event and returns. Nothing of it survives `stop`:
no process, no thread at work, no temporary file.
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
# How often a queue with messages is looked at again while idle is waited for.
_LOOK_AGAIN_SECONDS = 0.05
_FILES = 4096


class LambdaService:
    """Owns the environments, the event queue, the pollers and the log."""

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
        """Kill what runs, forget what waits, write the log. Messages in hand stay in their queues."""
        self._mappings.stop()
        self._events.stop()
        self._fleet.stop()
        self._events.join()
        self._mappings.join()
        self._log.stop()
        self._clients.close()

    def function(self, name: str) -> Function:
        """What is deployed under a name, partial ARN or ARN; raises FunctionUnknown."""
        return self._functions.function(name)

    def invoke(self, name: str, payload: bytes) -> Result:
        """Run a function and wait for it; raises a LambdaFault where Lambda would refuse the call."""
        with self._activity.one():
            function = self._functions.function(name)
            content = checked_payload(payload, LARGEST_SYNCHRONOUS)
            return self._run(function, LambdaInvocation(payload=content))

    def enqueue(self, name: str, payload: bytes) -> str:
        """Accept an event for a function, and answer its request id; raises a LambdaFault as `invoke` does."""
        self._functions.function(name)
        content = checked_payload(payload, LARGEST_ASYNCHRONOUS)
        invocation = LambdaInvocation(payload=content)
        self._events.put(Event(function_name=name, invocation=invocation, accepted_at=time.monotonic()))
        return invocation.request_id

    def refresh(self) -> None:
        """Something was deployed: trust nothing that was read before."""
        self._functions.forget()
        self._mappings.ask()

    def idle(self, timeout: float) -> bool:
        """Wait until nothing runs, no event waits, also for a retry, and no mapped queue holds visible messages; what
        ran has its log written then. False if the time-out passes first."""
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
        """Numbers for a person: what runs and what waits."""
        return {
            "under_way": self._activity.under_way,
            "running": self._concurrency.running(),
            "environments": self._fleet.count(),
            "events_waiting": self._events.waiting(),
            "mappings": self._mappings.count(),
            "destinations_failed": self._destinations.failed,
        }

    def _is_quiet(self) -> bool:
        """Nothing is under way, nothing waits in a queue, and nothing began while that was looked at."""
        begun = self._activity.begun
        return not self._mappings.waiting() and not self._activity.under_way and self._activity.begun == begun

    def _run(self, function: Function, invocation: LambdaInvocation) -> Result:
        with self._concurrency.one(function):
            return self._fleet.run(function, invocation)


def _allow_many_files() -> None:
    """An environment takes about ten; some systems allow a process 256 unless it asks for more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < _FILES:
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (_FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard), hard)
        )


def checked_payload(payload: bytes, limit: int) -> bytes:
    """The payload, if Lambda would take it; nothing stands for an empty object."""
    if len(payload) > limit:
        raise RequestTooLarge(f"Request must be smaller than {limit} bytes for the InvokeFunction operation")
    try:
        json.loads(payload or b"{}")
    except ValueError as error:
        raise ContentInvalid(f"Could not parse request body into json: {error}") from None
    return payload or b"{}"
