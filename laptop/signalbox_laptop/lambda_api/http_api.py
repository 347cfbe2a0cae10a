"""Serve an HTTP API in front of a function as API Gateway does: events of payload format 2.0, and what they answer."""

from __future__ import annotations

import base64
import json
import time
import uuid
from datetime import UTC, datetime
from typing import Any

from signalbox_laptop.lambda_api.errors import LambdaFault, RequestTooLarge, Throttled
from signalbox_laptop.lambda_api.http_server import LOOPBACK, HttpServer, Request, Response
from signalbox_laptop.lambda_control.service import LambdaService

_MOST_BYTES = 10 * 1024 * 1024
_TEXT = ("text/", "application/json", "application/javascript", "application/xml", "application/x-www-form-urlencoded")


class HttpApi:
    """Pass each request to one function."""

    def __init__(self, port: int, function: str, service: LambdaService) -> None:
        self._function, self._service = function, service
        self._server = _server(port, self._answer)

    @property
    def address(self) -> str:
        return f"http://{self._server.address}"

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self._server.stop()

    def _answer(self, request: Request) -> Response:
        if len(request.body) > _MOST_BYTES:
            return _refusal(413, "Request Entity Too Large")
        try:
            result = self._service.invoke(self._function, json.dumps(event_of(request)).encode())
        except Throttled:
            return _refusal(503, "Service Unavailable")
        except RequestTooLarge:
            return _refusal(413, "Request Entity Too Large")
        except LambdaFault:
            return _refusal(500, "Internal Server Error")
        if result.function_error:
            return _refusal(500, "Internal Server Error")
        return response_of(json.loads(result.payload))


def event_of(request: Request) -> dict[str, Any]:
    """Return the event that API Gateway makes of a request."""
    path, _, query = request.target.partition("?")
    headers: dict[str, str] = {}
    for given, value in request.headers.items():
        name = given.lower()
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    cookies = [cookie.strip() for cookie in headers.pop("cookie", "").split(";") if cookie.strip()]
    event = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query,
        "headers": headers,
        "requestContext": {
            "accountId": "anonymous",
            "apiId": "laptop",
            "domainName": request.headers.get("Host", LOOPBACK),
            "http": {
                "method": request.method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": LOOPBACK,
                "userAgent": headers.get("user-agent", ""),
            },
            "requestId": str(uuid.uuid4()),
            "routeKey": "$default",
            "stage": "$default",
            "time": datetime.now(UTC).strftime("%d/%b/%Y:%H:%M:%S +0000"),
            "timeEpoch": time.time_ns() // 1_000_000,
        },
        "isBase64Encoded": False,
    }
    if cookies:
        event["cookies"] = cookies
    if request.body:
        is_text = headers.get("content-type", "").lower().startswith(_TEXT)
        text = request.body.decode(errors="replace") if is_text else base64.b64encode(request.body).decode()
        event |= {"body": text, "isBase64Encoded": not is_text}
    return event


def response_of(answer: Any) -> Response:
    """Return the response that API Gateway makes of a function's answer."""
    if not isinstance(answer, dict) or "statusCode" not in answer:
        return Response(200, json.dumps(answer).encode(), [("Content-Type", "application/json")])
    body = answer.get("body") or ""
    content = base64.b64decode(body) if answer.get("isBase64Encoded") else body.encode()
    headers = [(name, str(value)) for name, value in (answer.get("headers") or {}).items()]
    headers += [("Set-Cookie", cookie) for cookie in answer.get("cookies") or []]
    return Response(int(answer["statusCode"]), content, headers)


def _server(port: int, answer: Any) -> HttpServer:
    """Serve on this port if it is free, else on any that is."""
    try:
        return HttpServer(port, answer)
    except OSError:
        return HttpServer(0, answer)


def _refusal(status: int, message: str) -> Response:
    return Response(status, json.dumps({"message": message}).encode(), [("Content-Type", "application/json")])
