"""Serve Lambda's Runtime API to one execution environment's process, as its runtime client calls it.

Its only state is the invocation that waits to be taken. Each call of the process becomes a signal to the environment.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass

from signalbox_laptop.lambda_api.http_server import HttpServer, Request, Response
from signalbox_laptop.lambda_runtime.invocation import LambdaInvocation

# The largest answer that Lambda takes: 6 MB and room for an envelope.
LARGEST_RESPONSE = 6_291_556
_API = "/2018-06-01/runtime"
_ACCEPTED = Response(202, b'{"status":"OK"}', (("Content-Type", "application/json"),))


@dataclass(frozen=True, slots=True)
class Ready:
    """The process asks for an invocation."""


@dataclass(frozen=True, slots=True)
class Responded:
    """The handler returned."""

    request_id: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Failed:
    """The handler raised."""

    request_id: str
    body: bytes


@dataclass(frozen=True, slots=True)
class InitFailed:
    """The code outside the handler raised, or there is no such handler."""

    body: bytes


@dataclass(frozen=True, slots=True)
class Exited:
    """The process is gone; `how` is Lambda's sentence for it."""

    how: str


Signal = Ready | Responded | Failed | InitFailed | Exited


@dataclass(frozen=True, slots=True)
class Offer:
    """Describe an invocation on its way to the process."""

    invocation: LambdaInvocation
    function_arn: str
    deadline_ms: int

    def headers(self) -> list[tuple[str, str]]:
        return [
            ("Content-Type", "application/json"),
            ("Lambda-Runtime-Aws-Request-Id", self.invocation.request_id),
            ("Lambda-Runtime-Deadline-Ms", str(self.deadline_ms)),
            ("Lambda-Runtime-Invoked-Function-Arn", self.function_arn),
            ("Lambda-Runtime-Trace-Id", self.invocation.trace),
        ]


class RuntimeApi:
    """Serve one process, on a port of its own."""

    def __init__(self, signal: Callable[[Signal], None]) -> None:
        self._signal = signal
        self._offers: queue.SimpleQueue[Offer | None] = queue.SimpleQueue()
        # Set once the last offer has been sent to the process.
        self.taken = threading.Event()
        self._server = HttpServer(0, self._answer)
        self._server.start()

    @property
    def address(self) -> str:
        return self._server.address

    def offer(self, offer: Offer) -> None:
        self.taken.clear()
        self._offers.put(offer)

    def close(self) -> None:
        self._offers.put(None)
        self._server.stop()

    def _answer(self, request: Request) -> Response | None:
        match request.path.removeprefix(_API).split("/")[1:]:
            case ["invocation", "next"]:
                return self._next(request)
            case ["invocation", request_id, "response"]:
                return self._respond(request_id, request.body)
            case ["invocation", request_id, "error"]:
                self._signal(Failed(request_id, request.body))
                return _ACCEPTED
            case ["init", "error"]:
                self._signal(InitFailed(request.body))
                return _ACCEPTED
        return Response(404, b'{"errorType":"InvalidPath","errorMessage":"not part of the Runtime API"}')

    def _next(self, request: Request) -> Response | None:
        self._signal(Ready())
        offer = self._offers.get()
        # A process that died while it waited has not received the invocation.
        if offer is None or request.abandoned():
            return None
        self.taken.set()
        return Response(200, offer.invocation.payload, offer.headers())

    def _respond(self, request_id: str, body: bytes) -> Response:
        if len(body) <= LARGEST_RESPONSE:
            self._signal(Responded(request_id, body))
            return _ACCEPTED
        # Raised here, as Lambda does: the runtime client takes the 413 for a fault and ends its process.
        self._signal(Failed(request_id, _TOO_LARGE))
        return Response(413, b'{"errorType":"RequestEntityTooLarge","errorMessage":"Exceeded maximum allowed payload"}')


_TOO_LARGE = (
    b'{"errorMessage":"Response payload size exceeded maximum allowed payload size (%d bytes).",'
    b'"errorType":"Function.ResponseSizeTooLarge"}'
) % LARGEST_RESPONSE
