"""Take the messages of a service that sends them, unless a fault meets them: what SES and SNS have in common.

`PUT /_stand_in/faults` replaces the faults. What a fault looks for is part of "POST /path Name {request as JSON}".
Calls that send no message go on to moto, where there is one.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pydantic import TypeAdapter

from signalbox_laptop.lambda_api.forwarder import Forwarder
from signalbox_laptop.lambda_api.http_server import Request, Response
from signalbox_laptop.stand_ins.faults import Fault, Faults
from signalbox_laptop.stand_ins.service_stand_in import STRICT, CallRefused, ServiceStandIn, unknown_operation


@dataclass(frozen=True, slots=True)
class Message:
    """Describe a call that sends: its operation's name, and its parameters as boto3 names them."""

    name: str
    request: dict[str, Any]


class MessageStandIn(ServiceStandIn):
    """Own the faults. `errors` are the service's codes by status."""

    instruction = "faults"
    reader = TypeAdapter(list[Fault], config=STRICT)
    errors: ClassVar[Mapping[int, str]]

    def __init__(self, moto: str | None = None) -> None:
        super().__init__()
        self._faults = Faults()
        self.moto = Forwarder(moto) if moto else None

    def stop(self) -> None:
        self._faults.end()
        super().stop()
        if self.moto:
            self.moto.close()

    def take(self, told: Iterable[Fault]) -> None:
        self._faults.replace(told)

    def add(self, told: Iterable[Fault]) -> None:
        for fault in told:
            self._faults.add(fault)

    def serve(self, request: Request) -> Response | None:
        message = self.read(request)
        if message is None:
            return self._pass_on(request)
        self.keep(name=message.name, request=message.request)
        text = f"{message.name} {json.dumps(message.request, ensure_ascii=False)}"
        fault = self._faults.meet(replace(request, body=text.encode(errors="replace")))
        if fault is not None and not fault.lost:
            return self._fail(fault)
        response = self.accept(request, message)
        return None if fault is not None else response

    @abstractmethod
    def read(self, request: Request) -> Message | None:
        """Return the message that a call sends, or None for any other call."""

    @abstractmethod
    def accept(self, request: Request, message: Message) -> Response:
        """Answer a message with its id."""

    def _pass_on(self, request: Request) -> Response:
        if self.moto is None:
            raise unknown_operation(request)
        return self.moto.answer(request)

    def _fail(self, fault: Fault) -> Response:
        code = self.errors.get(fault.status, self.errors[500 if fault.status >= 500 else 400])
        response = self.refuse(CallRefused(fault.status, code, "as the stand-in was told"))
        extra = [("Retry-After", fault.retry_after)] if fault.retry_after is not None else []
        return replace(response, headers=[*response.headers, *extra])
