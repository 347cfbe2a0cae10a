"""Pass requests on to moto unchanged: method, target, headers with the client's Host, and body."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

import urllib3
from urllib3.exceptions import HTTPError

from signalbox_laptop.lambda_api.http_server import Request, Response

# These headers concern one connection, and there are two.
_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "expect",
    }
)


class Forwarder:
    """Connect to moto. Each long poll holds a connection, so their number has no limit."""

    def __init__(self, endpoint: str) -> None:
        place = urlsplit(endpoint)
        self._endpoint = endpoint
        self._pool = urllib3.HTTPConnectionPool(
            place.hostname or "", place.port, maxsize=64, block=False, retries=False, timeout=urllib3.Timeout(5, None)
        )

    def answer(self, request: Request) -> Response:
        try:
            answer = self._pool.urlopen(
                request.method,
                request.target,
                body=request.body,
                headers=_onward(request),
                redirect=False,
                decode_content=False,
            )
        except HTTPError as error:
            return _unreachable(self._endpoint, error)
        return Response(answer.status, answer.data, _back(request, answer.headers))

    def close(self) -> None:
        self._pool.close()


def _onward(request: Request) -> urllib3.HTTPHeaderDict:
    headers = urllib3.HTTPHeaderDict()
    for name, value in request.headers.items():
        if name.lower() not in _HOP_BY_HOP | {"content-length"}:
            headers.add(name, value)
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        headers["Content-Length"] = str(len(request.body))
    return headers


def _back(request: Request, headers: urllib3.HTTPHeaderDict) -> list[tuple[str, str]]:
    # HEAD answers with the length that a GET's body would have; otherwise the body's own length holds.
    dropped = _HOP_BY_HOP if request.method == "HEAD" else _HOP_BY_HOP | {"content-length"}
    return [(name, value) for name, value in headers.iteritems() if name.lower() not in dropped]


def _unreachable(endpoint: str, error: HTTPError) -> Response:
    message = f"the AWS stand-in at {endpoint} does not answer ({error}); see its log, or start the laptop again"
    body = json.dumps({"__type": "ServiceUnavailable", "message": message}).encode()
    return Response(503, body, [("Content-Type", "application/json")])
