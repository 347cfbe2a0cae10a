"""Send one HTTP request and return its result as a value: a network failure is a response too, with status 0.

A response says whether a retry may help (`passing`), and whether the other side may have done what it was asked to
although it does not say so (`doubtful`). The library is loaded with the first request.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from signalbox.http.retry_after import seconds_to_wait

if TYPE_CHECKING:
    from urllib3 import PoolManager
    from urllib3.exceptions import HTTPError

CONNECT_SECONDS = 3.0
AT_ONCE = 8
# A gateway answers these when it lost touch with a service, which may have got the request.
FROM_A_GATEWAY = (502, 504, 520, 524)


@dataclass(frozen=True, slots=True)
class Response:
    """Describe the result of a request."""

    status: int  # 0: there was no answer
    words: str  # for people: never the body, which may hold a payload
    body: bytes = b""
    length: int | None = None  # of the body, as the headers give it
    retry_after: float | None = None  # seconds
    doubtful: bool = False

    @property
    def good(self) -> bool:
        return 200 <= self.status < 300

    @property
    def passing(self) -> bool:
        return self.status in (0, 429) or self.status >= 500

    def fields(self) -> dict[str, Any]:
        """Return the body, where it is a JSON object."""
        try:
            fields = json.loads(self.body)
        except ValueError:
            return {}
        return fields if isinstance(fields, dict) else {}


class HttpClient:
    """Own a pool of connections. Each run makes one: between two runs the other side closes idle connections."""

    def __init__(self, read_seconds: float) -> None:
        self._read_seconds = read_seconds
        self.longest_call = CONNECT_SECONDS + read_seconds

    @cached_property
    def _pool(self) -> PoolManager:
        from urllib3 import PoolManager, Timeout

        time_out = Timeout(connect=CONNECT_SECONDS, read=self._read_seconds)
        return PoolManager(maxsize=AT_ONCE, retries=False, timeout=time_out)

    def send(
        self, method: str, url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Try once, without redirects."""
        from urllib3.exceptions import HTTPError

        try:
            response = self._pool.request(method, url, body=body, headers=headers, redirect=False)
        except HTTPError as error:
            return Response(0, _words(error), doubtful=not _never_sent(error))
        answer = Response(
            response.status,
            f"status {response.status}",
            response.data,
            _number(response.headers.get("Content-Length")),
            seconds_to_wait(response.headers.get("Retry-After")),
        )
        return replace(answer, doubtful=_is_doubtful(answer))


def _is_doubtful(answer: Response) -> bool:
    """Return True for a gateway's failure without the service's own words, and for a failure that has a result."""
    if answer.status < 500:
        return False
    fields = answer.fields()
    return "id" in fields or (answer.status in FROM_A_GATEWAY and not fields)


def _never_sent(error: HTTPError) -> bool:
    """Return whether no connection was made, so that nothing can have been received."""
    from urllib3 import exceptions

    if isinstance(error, exceptions.SSLError):
        return any(isinstance(cause, ssl.SSLCertVerificationError) for cause in error.args)
    return isinstance(error, exceptions.NewConnectionError | exceptions.ConnectTimeoutError)


def _words(error: HTTPError) -> str:
    """Return the kind of failure: urllib3's own text shows objects and addresses."""
    from urllib3 import exceptions

    kinds: tuple[tuple[type[Exception], str], ...] = (
        (exceptions.ReadTimeoutError, "no answer in time"),
        # First, since urllib3 counts it among the time-outs.
        (exceptions.NewConnectionError, "can't connect"),
        (exceptions.ConnectTimeoutError, "no connection in time"),
        (exceptions.ProtocolError, "the connection broke"),
    )
    return next((words for kind, words in kinds if isinstance(error, kind)), type(error).__name__)


def _number(given: str | None) -> int | None:
    return int(given) if given is not None and given.isascii() and given.isdigit() else None
