"""Stand before the stand-in's S3, over a real socket: pass everything on, but fail what a test names."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from dataclasses import replace

import urllib3

from signalbox.testing.stand_in import Request, Response, StandIn
from signalbox_laptop.lambda_api import http_server
from signalbox_laptop.stand_ins.faults import Faults

FORBIDDEN = b"<Error><Code>AccessDenied</Code><Message>as the test wants it</Message></Error>"
NOT_PASSED = {"content-length", "transfer-encoding", "connection"}


class S3Front(StandIn):
    """Own a server. `requests` is what it was asked, `faults` what it does wrong."""

    def __init__(self, endpoint: str) -> None:
        self.faults = Faults()
        self.locked = ""  # the key of an object that S3 does not delete
        self.requests: deque[str] = deque()
        self.passed: Callable[[Request], object] = lambda _: None  # after the work is done, before the answer
        self._endpoint = endpoint
        self._pool = urllib3.PoolManager(retries=False)
        super().__init__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._pool.clear()

    def count(self, method: str) -> int:
        return sum(asked.startswith(f"{method} ") for asked in self.requests)

    def answer(self, request: Request) -> Response | None:
        self.requests.append(f"{request.method} {request.target}")
        asked = http_server.Request(request.method, request.target, request.headers, request.body)
        fault = self.faults.meet(asked)
        if fault is not None and not fault.lost:
            return Response(fault.status, FORBIDDEN, [("Content-Type", "application/xml")])
        response = self._pass_on(request)
        self.passed(request)
        return None if fault is not None else response

    def _pass_on(self, request: Request) -> Response:
        locked = f"<Key>{self.locked}</Key>".encode()
        if self.locked and request.method == "POST" and locked in request.body:
            body = re.sub(b"<Object>" + re.escape(locked) + b".*?</Object>", b"", request.body)
            answer = self._forward(replace(request, body=body))
            error = b"<Error>" + locked + b"<Code>AccessDenied</Code></Error></DeleteResult>"
            return replace(answer, body=answer.body.replace(b"</DeleteResult>", error))
        return self._forward(request)

    def _forward(self, request: Request) -> Response:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in NOT_PASSED | {"host"}}
        answer = self._pool.request(
            request.method, f"{self._endpoint}{request.target}", body=request.body, headers=headers, redirect=False
        )
        # The length of what HEAD tells of is not that of its answer's body.
        kept = NOT_PASSED - {"content-length"} if request.method == "HEAD" else NOT_PASSED
        passed = [(name, value) for name, value in answer.headers.items() if name.lower() not in kept]
        return Response(answer.status, answer.data, passed)
