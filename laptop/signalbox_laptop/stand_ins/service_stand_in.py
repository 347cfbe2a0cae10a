"""Serve a service of AWS in its place: keep its calls, and take instructions below /_stand_in/.

`GET /_stand_in/calls` returns the last calls, `PUT /_stand_in/<instruction>` replaces what the service is to do, and
`POST` adds to it. An instruction that can't be read changes nothing, and is answered with 400 and the reason.
"""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections import deque
from datetime import UTC, datetime
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from signalbox_laptop.lambda_api.http_server import HttpServer, Request, Response

# How instructions are read: without unknown fields, and without "1" for 1.
STRICT = ConfigDict(extra="forbid", strict=True)

_CONTROL = "/_stand_in/"
_KEPT = 10_000


class CallRefused(Exception):
    """A call is answered with one of the service's errors."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class ServiceStandIn(ABC):
    """Own the server. `instruction` is the one that it takes below /_stand_in/, and `reader` reads it."""

    instruction: str
    reader: TypeAdapter[Any]

    def __init__(self) -> None:
        self.calls: deque[dict[str, Any]] = deque(maxlen=_KEPT)
        self._over = threading.Event()
        self._server = HttpServer(0, self._answer)

    @property
    def url(self) -> str:
        return f"http://{self._server.address}"

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self._over.set()
        self._server.stop()

    @abstractmethod
    def take(self, told: Any) -> None:
        """Replace what the service is to do."""

    @abstractmethod
    def add(self, told: Any) -> None:
        """Add to what the service is to do."""

    @abstractmethod
    def serve(self, request: Request) -> Response | None:
        """Answer a call, from a thread of its connection; None hangs up."""

    def refuse(self, refusal: CallRefused) -> Response:
        """Return an error in the service's format: here that of its protocols with JSON."""
        body = {"__type": refusal.code, "message": str(refusal)}
        return json_response(body, refusal.status, ("x-amzn-errortype", refusal.code))

    def keep(self, **call: Any) -> None:
        self.calls.append({"at": datetime.now(UTC).isoformat(timespec="milliseconds"), **call})

    def hang(self, seconds: float) -> None:
        self._over.wait(seconds)

    def _answer(self, request: Request) -> Response | None:
        if request.path.startswith(_CONTROL):
            return self._control(request.method, request.path.removeprefix(_CONTROL), request.body)
        try:
            return self.serve(request)
        except CallRefused as refusal:
            return self.refuse(refusal)

    def _control(self, method: str, name: str, body: bytes) -> Response:
        if (method, name) == ("GET", "calls"):
            return json_response({"calls": list(self.calls)})
        if name != self.instruction or method not in ("PUT", "POST"):
            known = f"there are GET calls, and PUT and POST {self.instruction}"
            return json_response({"message": f"no instruction {method} {name}; {known}"}, 400)
        try:
            told = self.reader.validate_json(body)
        except ValidationError as error:
            return json_response({"message": f"{name} refused: {_faults(error)}"}, 400)
        (self.take if method == "PUT" else self.add)(told)
        return json_response({name: len(told)})


def json_response(body: Any, status: int = 200, *headers: tuple[str, str]) -> Response:
    return Response(status, json.dumps(body).encode(), [("Content-Type", "application/json"), *headers])


def read_object(request: Request) -> dict[str, Any]:
    """Return the call's JSON object."""
    try:
        given = json.loads(request.body)
    except ValueError as error:
        raise CallRefused(400, "SerializationException", f"the body is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise CallRefused(400, "SerializationException", "the body is not a JSON object")
    return given


def unknown_operation(request: Request) -> CallRefused:
    message = f"the stand-in does not know {request.method} {request.path}"
    return CallRefused(404, "UnknownOperationException", message)


def _faults(error: ValidationError) -> str:
    """Name each fault by its place, such as 0.status."""
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(": ".join(filter(None, [".".join(map(str, one["loc"])), one["msg"]])) for one in faults)
