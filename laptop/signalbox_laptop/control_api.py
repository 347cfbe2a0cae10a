"""Answer the control calls below /_signalbox/, which the command line and tests make to a running stack."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from signalbox_laptop.errors import LaptopError
from signalbox_laptop.event_sources.clock import Firing
from signalbox_laptop.event_sources.delivery import Deliveries
from signalbox_laptop.lambda_api.http_server import Request, Response
from signalbox_laptop.lambda_control.service import LambdaService

_IDLE_TIMEOUT_SECONDS = 60.0

Answer = Mapping[str, Any]


class RequestRefused(LaptopError):
    """A control call can't be understood."""


class Control:
    """Answer the front's requests."""

    def __init__(self, service: LambdaService, firing: Firing, deliveries: Deliveries, stop: threading.Event) -> None:
        self._service, self._firing, self._deliveries, self._stop = service, firing, deliveries, stop
        self._calls: Mapping[tuple[str, str], Callable[[Request], Answer]] = {
            ("GET", "status"): self._status,
            ("GET", "idle"): self._idle,
            ("POST", "tick"): self._tick,
            ("POST", "stop"): self._end,
        }

    def __call__(self, request: Request) -> Response:
        name = request.path.rpartition("/")[2]
        call = self._calls.get((request.method, name))
        if call is None:
            known = ", ".join(f"{method} {name}" for method, name in self._calls)
            return _response(404, {"message": f"no control call {request.method} {name}; there are {known}"})
        try:
            return _response(200, call(request))
        except LaptopError as refusal:
            return _response(400, {"message": str(refusal)})

    def _status(self, _: Request) -> Answer:
        return {
            **self._service.status(),
            "clock": self._firing.clock_runs,
            "deliveries_retrying": self._deliveries.retrying,
        }

    def _idle(self, request: Request) -> Answer:
        """Wait for deliveries first: a delivery that arrives gives the service work, never the other way round."""
        deadline = time.monotonic() + _seconds(request.query.get("timeout"))
        idle = self._deliveries.wait_until_idle(deadline - time.monotonic())
        idle = idle and self._service.idle(max(deadline - time.monotonic(), 0))
        return {"idle": idle, **self._status(request)}

    def _tick(self, request: Request) -> Answer:
        asked = _object(request.body)
        rules = asked.get("rules")
        if not (rules is None or isinstance(rules, list)):
            raise RequestRefused(f"rules is {rules!r}, which is not a list of names; leave it out for all")
        fired = self._firing.fire(_instant(asked.get("at")), rules, due=bool(asked.get("due")))
        return {"fired": [asdict(one) for one in fired]}

    def _end(self, _: Request) -> Answer:
        self._stop.set()
        return {"stopping": True}


def _seconds(given: str | None) -> float:
    try:
        return float(given) if given is not None else _IDLE_TIMEOUT_SECONDS
    except ValueError:
        raise RequestRefused(f"timeout is '{given}', which is not a number of seconds") from None


def _instant(given: Any) -> datetime:
    if given is None:
        return datetime.now(UTC)
    try:
        instant = datetime.fromisoformat(given)
    except (TypeError, ValueError):
        raise RequestRefused(
            f"at is {given!r}, which is not an ISO-8601 instant such as 2026-03-29T00:45:00Z"
        ) from None
    if instant.tzinfo is None:
        raise RequestRefused(f"at is '{given}', without a time zone; add one, such as a trailing Z")
    return instant


def _object(body: bytes) -> dict[str, Any]:
    try:
        given = json.loads(body or b"{}")
    except ValueError as error:
        raise RequestRefused(f"the body is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise RequestRefused("the body is not a JSON object")
    return given


def _response(status: int, answer: Answer) -> Response:
    return Response(status, json.dumps(answer).encode(), [("Content-Type", "application/json")])
