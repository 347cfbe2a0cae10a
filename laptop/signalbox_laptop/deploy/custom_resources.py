"""Create custom resources as CloudFormation does: send the deploy's event to their functions, which must answer.

On AWS the event is asynchronous and the answer goes to an address in S3. Here the deploy waits for the function, and
the address is on loopback. The answer decides about the stack, as there.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from signalbox_laptop.aws import ACCOUNT, REGION
from signalbox_laptop.errors import LaptopError, ResourceFailed
from signalbox_laptop.lambda_api.errors import FunctionUnknown
from signalbox_laptop.lambda_api.http_server import HttpServer, Request, Response
from signalbox_laptop.lambda_control.service import LambdaService

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class CustomResource:
    """Describe one custom resource of the template, its properties resolved."""

    stack: str
    name: str
    type: str
    properties: Mapping[str, Any]

    @property
    def function(self) -> str:
        """Return the function's name from its ARN."""
        return str(self.properties["ServiceToken"]).split(":")[6]

    def event(self, url: str) -> dict[str, Any]:
        """Return the event that CloudFormation sends when the resource is made."""
        return {
            "RequestType": "Create",
            "ResponseURL": url,
            "StackId": f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/{self.stack}/laptop",
            "RequestId": secrets.token_hex(16),
            "ResourceType": self.type,
            "LogicalResourceId": self.name,
            "ResourceProperties": dict(self.properties),
        }


def create(service: LambdaService, resource: CustomResource, report: Report) -> None:
    """Have the function make the resource; raise its own reason if it refuses."""
    name = resource.function
    report(f"{resource.name}: asking {name}")
    with _Mailbox() as mailbox:
        try:
            result = service.invoke(name, json.dumps(resource.event(mailbox.url)).encode())
        except FunctionUnknown:
            raise LaptopError(
                f"{resource.name}: its ServiceToken names {name}, and there is no such function"
            ) from None
        answer = mailbox.answer
    if answer is None:
        error = json.loads(result.payload) if result.failed else {}
        why = f": {error.get('errorType')}: {error.get('errorMessage')}" if error else ""
        raise ResourceFailed(f"{resource.name}: {name} ended without an answer to CloudFormation{why}")
    if answer.get("Status") != "SUCCESS":
        raise ResourceFailed(f"{resource.name} failed: {answer.get('Reason')}")
    report(f"{resource.name}: {answer.get('Reason', 'done')}")


class _Mailbox:
    """Receive one answer."""

    def __init__(self) -> None:
        self._path = f"/{secrets.token_urlsafe(16)}"
        self._server = HttpServer(0, self._take)
        self.answer: dict[str, Any] | None = None

    @property
    def url(self) -> str:
        return f"http://{self._server.address}{self._path}"

    def __enter__(self) -> _Mailbox:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    def _take(self, request: Request) -> Response:
        if request.method != "PUT" or request.path != self._path:
            return Response(403)
        try:
            self.answer = json.loads(request.body)
        except ValueError:
            return Response(400)
        return Response(200)
