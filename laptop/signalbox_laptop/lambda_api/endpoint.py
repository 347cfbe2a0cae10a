"""Route the laptop's requests: invocations to the Lambda service, control calls to their handler, the rest to moto.

It takes its port when it is made, so that functions can be told the endpoint before anything is served.
"""

from __future__ import annotations

import errno
import json
import logging
import re
from collections.abc import Callable

from signalbox_laptop.lambda_api.forwarder import Forwarder
from signalbox_laptop.lambda_api.http_server import LOOPBACK, HttpServer, Request, Response
from signalbox_laptop.lambda_api.invoke_api import InvokeApi
from signalbox_laptop.lambda_control.service import LambdaService

CONTROL_PREFIX = "/_signalbox/"
Control = Callable[[Request], Response]

# Calls to these services change functions and mappings.
_DEPLOYING = frozenset({"lambda", "cloudformation"})
_SCOPE = re.compile(r"Credential=[^,]*/([\w-]+)/aws4_request")
_log = logging.getLogger(__name__)


class PortBusy(Exception):
    """Another process listens on the endpoint's port."""


class Front:
    """Serve the endpoint, on loopback only."""

    def __init__(self, port: int, moto_endpoint: str) -> None:
        self._forwarder = Forwarder(moto_endpoint)
        self._server = _bound(port, self._answer)
        self._invoke_api: InvokeApi | None = None
        self._service: LambdaService | None = None
        self._control: Control = _nobody

    @property
    def endpoint(self) -> str:
        return f"http://{self._server.address}"

    @property
    def port(self) -> int:
        return self._server.port

    def start(self, service: LambdaService, control: Control) -> None:
        self._service, self._control = service, control
        self._invoke_api = InvokeApi(service)
        self._server.start()

    def stop(self) -> None:
        self._server.stop()
        self._forwarder.close()

    def _answer(self, request: Request) -> Response:
        try:
            return self._route(request)
        except Exception as error:
            _log.exception("front.failed method=%s path=%s", request.method, request.path)
            message = f"the laptop failed at {request.method} {request.path}: {error!r}; its log says where"
            return Response(500, json.dumps({"Type": "Service", "Message": message}).encode())

    def _route(self, request: Request) -> Response:
        if request.path.startswith(CONTROL_PREFIX):
            return self._control(request)
        return self._invoke(request) or self._forward(request)

    def _invoke(self, request: Request) -> Response | None:
        return self._invoke_api.answer(request) if self._invoke_api else None

    def _forward(self, request: Request) -> Response:
        response = self._forwarder.answer(request)
        if self._service is not None and _may_deploy(request):
            self._service.refresh()
        return response


def _bound(port: int, answer: Callable[[Request], Response]) -> HttpServer:
    try:
        return HttpServer(port, answer)
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        why = "is in use" if error.errno == errno.EADDRINUSE else "may not be used by this user"
        raise PortBusy(
            f"port {port} on {LOOPBACK} {why}; stop what listens there, or choose another with --port "
            "(0 takes any free one)"
        ) from None


def _may_deploy(request: Request) -> bool:
    """Say whether a call may change functions or mappings; each call is signed for one service."""
    scope = _SCOPE.search(request.headers.get("Authorization", ""))
    return request.method != "GET" and scope is not None and scope[1] in _DEPLOYING


def _nobody(request: Request) -> Response:
    return Response(404, json.dumps({"message": f"nothing answers {request.path} yet"}).encode())
