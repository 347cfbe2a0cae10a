"""Carry out a request once for each Idempotency-Key of a caller, and give its response to those who ask again.

A key is good for a day. A request that failed on our side leaves no response, so that it can be sent again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from signalbox.access.caller import Caller
from signalbox.api.errors import KeyReused, RequestInProgress
from signalbox.api.request import HttpRequest
from signalbox.api.response import JSON, HttpResponse
from signalbox.errors import PayloadRefused
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
_LONGEST = 200


def once(
    db: Connection, request: HttpRequest, caller: Caller, key: str, run: Callable[[], HttpResponse]
) -> HttpResponse:
    """Run the request if its key is new; else return the response that it got."""
    if len(key) > _LONGEST or not key.isprintable():
        raise PayloadRefused(f"the Idempotency-Key has more than {_LONGEST} characters, or some that can't be printed")
    text = b"\0".join([request.method.encode(), request.path.encode(errors="replace"), request.body])
    values = {"caller": caller.name, "key": key, "hash": hashlib.sha256(text).digest()}
    if db.execute(SQL["begin"], values).fetchone() is None:
        same, status, body = db.execute(SQL["find"], values).fetchone() or (True, None, None)
        if not same:
            raise KeyReused(f"the Idempotency-Key '{key[:60]}' was given with another request: choose another one")
        if status is None:
            raise RequestInProgress(f"the request with the Idempotency-Key '{key[:60]}' is at work: ask again later")
        return HttpResponse(status, body, JSON).with_headers(idempotency_replayed="true")
    try:
        response = run()
    except BaseException:
        db.execute(SQL["forget"], values)
        raise
    db.execute(SQL["finish"], {**values, "status": response.status, "body": response.body})
    return response
