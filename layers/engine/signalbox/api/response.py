"""Write responses: JSON with an ETag, and problems (RFC 9457) that say which field is wrong and what to do."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from signalbox.api.errors import MethodRefused, status_of
from signalbox.api.request import HttpRequest
from signalbox.errors import PayloadRefused, SignalboxError

_RETRY_AFTER_SECONDS = "5"
JSON = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """Describe one response; its body is text."""

    status: int
    body: str
    headers: Mapping[str, str] = field(default_factory=dict)
    cookies: Sequence[str] = ()  # to set, with their attributes

    def with_headers(self, **headers: str) -> HttpResponse:
        """Return it with more headers, named with underscores for hyphens."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return replace(self, headers={**self.headers, **named})

    def as_event(self) -> dict[str, Any]:
        """Return it as an HTTP API takes it from a function."""
        event = {"statusCode": self.status, "headers": dict(self.headers), "body": self.body, "isBase64Encoded": False}
        return event | ({"cookies": list(self.cookies)} if self.cookies else {})


def json_response(status: int, answer: Mapping[str, Any]) -> HttpResponse:
    return HttpResponse(status, json.dumps(answer, ensure_ascii=False, separators=(",", ":")), JSON)


def unless_known(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Tag the response to a GET; to one who has it already, say only that nothing has changed."""
    if request.method != "GET" or response.status != 200 or "cache-control" in response.headers:
        return response
    tag = f'"{hashlib.sha256(response.body.encode()).hexdigest()[:32]}"'
    known = [given.strip().removeprefix("W/") for given in request.headers.get("if-none-match", "").split(",")]
    found = HttpResponse(304, "") if tag in known or known == ["*"] else response
    return found.with_headers(etag=tag, cache_control="private, no-cache", vary="authorization, cookie")


def problem(error: SignalboxError, request_id: str) -> HttpResponse:
    """Return what a request was refused for."""
    status = status_of(error)
    faults = error.faults if isinstance(error, PayloadRefused) else ()
    response = _problem(status, type(error).__name__, str(error), request_id, list(faults))
    if status == 401:
        return response.with_headers(www_authenticate='Bearer realm="signalbox"')
    if isinstance(error, MethodRefused):
        return response.with_headers(allow=", ".join(error.allowed))
    return response.with_headers(retry_after=_RETRY_AFTER_SECONDS) if status == 503 else response


def failure(request_id: str) -> HttpResponse:
    """Return the response to a request that met an error of ours."""
    detail = f"the request failed; the function's log has the error under the request id {request_id}"
    return _problem(500, "InternalError", detail, request_id, [])


def _problem(status: int, kind: str, detail: str, request_id: str, faults: list[tuple[str, str]]) -> HttpResponse:
    content: dict[str, Any] = {
        "type": f"urn:signalbox:{kind}",
        "title": kind,
        "status": status,
        "detail": detail,
        "request_id": request_id,
    }
    if faults:
        content["errors"] = [{"field": name, "message": message} for name, message in faults]
    # In ASCII: what is refused may be half a surrogate pair, which nothing could send on.
    return HttpResponse(status, json.dumps(content), {"content-type": "application/problem+json"})
