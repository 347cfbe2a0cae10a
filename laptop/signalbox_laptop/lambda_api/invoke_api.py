"""Answer Lambda's Invoke call over HTTP, as the SDKs and the AWS command line make it."""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Callable
from urllib.parse import unquote

from signalbox_laptop.lambda_api.errors import LambdaFault, ParameterInvalid
from signalbox_laptop.lambda_api.http_server import Request, Response
from signalbox_laptop.lambda_control.service import LambdaService
from signalbox_laptop.lambda_runtime.invocation import Result

_PATH = re.compile(r"/2015-03-31/functions/([^/]+)/invocations")
_JSON = ("Content-Type", "application/json")


class InvokeApi:
    """Decode a call, have the service run it, and encode the answer."""

    def __init__(self, service: LambdaService) -> None:
        self._service = service
        self._kinds: dict[str, Callable[[Request, str], Response]] = {
            "RequestResponse": self._synchronous,
            "Event": self._asynchronous,
        }

    def answer(self, request: Request) -> Response | None:
        """Return the response, or None for a request that is no Invoke call."""
        found = _PATH.fullmatch(request.path)
        if found is None or request.method != "POST":
            return None
        try:
            return self._invoke(request, ":".join([unquote(found[1]), *filter(None, [request.query.get("Qualifier")])]))
        except LambdaFault as fault:
            return _refusal(fault)

    def _invoke(self, request: Request, name: str) -> Response:
        kind = request.headers.get("X-Amz-Invocation-Type") or "RequestResponse"
        if kind not in self._kinds:
            raise ParameterInvalid(f"'{kind}' is not an invocation type; valid are {', '.join(self._kinds)}")
        return self._kinds[kind](request, name)

    def _synchronous(self, request: Request, name: str) -> Response:
        result = self._service.invoke(name, request.body)
        return Response(200, result.payload, _result_headers(request, result))

    def _asynchronous(self, request: Request, name: str) -> Response:
        request_id = self._service.enqueue(name, request.body)
        return Response(202, b"", [("x-amzn-RequestId", request_id)])


def _result_headers(request: Request, result: Result) -> list[tuple[str, str]]:
    headers = [
        _JSON,
        ("x-amzn-RequestId", result.request_id),
        ("X-Amz-Executed-Version", result.executed_version),
    ]
    if result.function_error:
        headers.append(("X-Amz-Function-Error", result.function_error))
    if request.headers.get("X-Amz-Log-Type") == "Tail":
        headers.append(("X-Amz-Log-Result", base64.b64encode(result.log_tail).decode()))
    return headers


def _refusal(fault: LambdaFault) -> Response:
    headers = [_JSON, ("x-amzn-RequestId", str(uuid.uuid4())), ("x-amzn-ErrorType", fault.code)]
    return Response(fault.status, fault.body(), headers)
