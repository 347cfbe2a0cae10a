"""Ask a stack's HTTP API, for programs that have no way to the database. It needs the standard library alone."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from signalbox.errors import ApiProblem

_TRIES = 3
_TRY_AGAIN = (429, 503)
_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.5, 10.0


class HttpClient:
    """Ask with one token. A refusal raises ApiProblem, with its status and what the API says is wrong.

    A GET, and a request with a `key`, is tried again where the API is away or throttles: it can't be carried out twice.
    """

    def __init__(self, url: str, token: str, *, timeout: float = 30.0) -> None:
        self._url, self._token, self._timeout = url.rstrip("/"), token, timeout

    def submit(
        self, job_type: str, payload: Mapping[str, Any], *, key: str | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Submit one job. With a `key`, a second submit of the type returns the first job."""
        return self.ask("POST", "/v1/jobs", {"job_type": job_type, "payload": payload, **fields}, key=key)

    def job(self, id_: str) -> dict[str, Any]:
        """Return a job with its attempts and all around it."""
        return self.ask("GET", f"/v1/jobs/{quote(id_, safe='')}")

    def jobs(self, **filters: Any) -> Iterator[dict[str, Any]]:
        """Yield the jobs that match, newest first, page by page."""
        before: str | None = None
        while True:
            page = self.ask("GET", "/v1/jobs", {**filters, "before_id": before})
            yield from page["jobs"]
            if (before := page["next"]) is None:
                return

    def ask(
        self, method: str, path: str, params: Mapping[str, Any] | None = None, *, key: str | None = None
    ) -> dict[str, Any]:
        """Send any request of the API and return its answer. Params that are None are left out."""
        given = {name: value for name, value in (params or {}).items() if value is not None}
        query = f"?{urlencode(given)}" if method == "GET" and given else ""
        headers = {"authorization": f"Bearer {self._token}", "content-type": "application/json"}
        if key is not None:
            headers["idempotency-key"] = key
        body = None if method == "GET" else json.dumps(given).encode()
        request = urllib.request.Request(self._url + path + query, body, headers, method=method)  # noqa: S310
        left = _TRIES if method == "GET" or key is not None else 1
        while True:
            left -= 1
            try:
                with urllib.request.urlopen(request, timeout=self._timeout) as response:  # noqa: S310
                    answer: dict[str, Any] = json.load(response)
                    return answer
            except urllib.error.HTTPError as error:
                if not left or error.code not in _TRY_AGAIN:
                    raise _problem(error) from None
                time.sleep(_seconds(error.headers.get("retry-after")))
            except urllib.error.URLError as error:
                if not left:
                    raise ApiProblem(0, f"{self._url} does not answer: {error.reason}") from None
                time.sleep(_FIRST_WAIT_SECONDS)


def _seconds(given: str | None) -> float:
    return min(float(given), _LONGEST_WAIT_SECONDS) if given and given.isdecimal() else 1.0


def _problem(error: urllib.error.HTTPError) -> ApiProblem:
    """Return what the API says; API Gateway's own refusals have a message only."""
    try:
        answer = json.loads(error.read())
    except ValueError:
        answer = {}
    detail = answer.get("detail") or answer.get("message") or error.reason
    return ApiProblem(error.code, str(detail), answer.get("errors", []), answer.get("request_id"))
