"""Stand in for Stripe: subscriptions, customers, their search, idempotency keys, and the ways in which they fail.

It accepts one key. `PUT /_stand_in/faults` with a list of faults makes it fail; `POST /_stand_in/customers` and
`/_stand_in/subscriptions` add something, as the demo's story does.
"""

from __future__ import annotations

import json
import re
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from signalbox_laptop.lambda_api.http_server import HttpServer, Request, Response
from signalbox_laptop.stand_ins.faults import Fault, Faults
from stand_ins.stripe_account import Account, page

KEY = "sk_test_laptop"
_CONTROL = "/_stand_in/"
_SEARCHED = re.compile(r"metadata\['organization_id'\]:'([^']*)'")

Params = Mapping[str, str]


class StripeStandIn:
    """Own the server. `account` is its data, `faults` the failures it is to show."""

    def __init__(self, port: int = 0) -> None:
        self.account, self.faults = Account(), Faults()
        self.requests: deque[tuple[str, str, Params]] = deque(maxlen=1000)
        self.during: Callable[[], object] | None = None  # called while a request is being answered
        self._replies: dict[str, tuple[Params, Response]] = {}
        self._creating = threading.Lock()
        self._server = HttpServer(port, self._answer)
        self._calls: Mapping[tuple[str, str], Callable[[Params], Response]] = {
            ("GET", "/v1/subscriptions"): self._list_subscriptions,
            ("GET", "/v1/customers/search"): self._search_customers,
        }

    @property
    def url(self) -> str:
        return f"http://{self._server.address}"

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self.faults.end()
        self._server.stop()

    def forget_replies(self) -> None:
        """Forget idempotency keys, as Stripe does after a day."""
        self._replies.clear()

    def _answer(self, request: Request) -> Response | None:
        if request.path.startswith(_CONTROL):
            return self._control(request)
        params = dict(parse_qsl(request.body.decode() or request.target.partition("?")[2], keep_blank_values=True))
        self.requests.append((request.method, request.path, params))
        fault = self.faults.meet(request)
        if fault is not None and not fault.lost:
            return _fail(fault)
        response = self._serve(request, params)
        if self.during is not None:
            self.during()
        return None if fault is not None else response

    def _serve(self, request: Request, params: Params) -> Response:
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return _error(401, "invalid_request_error", "Invalid API Key provided: sk_test_***")
        if (request.method, request.path) == ("POST", "/v1/customers"):
            return self._create_customer(params, request.headers.get("Idempotency-Key"))
        call = self._calls.get((request.method, request.path))
        if call is None:
            unknown = f"Unrecognized request URL ({request.method}: {request.path})."
            return _error(404, "invalid_request_error", unknown)
        return call(params)

    def _list_subscriptions(self, params: Params) -> Response:
        customer = params.get("customer", "")
        if customer not in self.account.customers:
            return _error(
                400,
                "invalid_request_error",
                f"No such customer: '{customer}'",
                code="resource_missing",
                param="customer",
            )
        found = self.account.subscriptions_of(customer, params.get("status"))
        return _json(200, page("/v1/subscriptions", found, params))

    def _search_customers(self, params: Params) -> Response:
        asked = _SEARCHED.fullmatch(params.get("query", ""))
        if asked is None:
            return _error(400, "invalid_request_error", "We were unable to parse your search query.", param="query")
        found = self.account.customers_of(asked[1])
        result = {"object": "search_result", "url": "/v1/customers/search", "has_more": False, "next_page": None}
        return _json(200, {**result, "data": found})

    def _create_customer(self, params: Params, key: str | None) -> Response:
        """Create a customer, once per key: a repeated call gets the first answer."""
        with self._creating:
            if key is not None and key in self._replies:
                return _replay(params, *self._replies[key])
            organization_id = params.get("metadata[organization_id]")
            id_ = self.account.add_customer(organization_id, name=params.get("name"))
            response = _json(200, self.account.customers[id_])
            if key is not None:
                self._replies[key] = (params, response)
            return response

    def _control(self, request: Request) -> Response:
        """Take instructions from outside."""
        try:
            return _json(200, self._told(request.path.removeprefix(_CONTROL), json.loads(request.body or b"null")))
        except (KeyError, TypeError, ValueError) as error:
            return _json(400, {"message": f"{request.method} {request.path}: {error!r}"})

    def _told(self, what: str, given: Any) -> Any:
        if what == "faults":
            self.faults.replace(Fault.of(fault) for fault in given)
            return {"faults": len(given)}
        if what == "customers":
            return {"id": self.account.add_customer(**given)}
        if what == "subscriptions":
            customer, status, prices = given.pop("customer"), given.pop("status"), given.pop("prices")
            return {"id": self.account.add_subscription(customer, status, *prices, **given)}
        raise ValueError("there are faults, customers and subscriptions")


def _replay(params: Params, first: Params, response: Response) -> Response:
    if params != first:
        return _error(
            400,
            "idempotency_error",
            "Keys for idempotent requests can only be used with the same parameters they were first used with.",
        )
    return Response(response.status, response.body, [*response.headers, ("Idempotent-Replayed", "true")])


def _fail(fault: Fault) -> Response:
    kind = "rate_limit_error" if fault.status == 429 else "api_error"
    response = _error(fault.status, kind, "as the stand-in was told")
    extra = [("Retry-After", fault.retry_after)] if fault.retry_after is not None else []
    return Response(response.status, response.body, [*response.headers, *extra])


def _error(status: int, kind: str, message: str, **fields: str) -> Response:
    return _json(status, {"error": {"type": kind, "message": message, **fields}})


def _json(status: int, body: Any) -> Response:
    headers = [("Content-Type", "application/json"), ("Request-Id", "req_local")]
    return Response(status, json.dumps(body).encode(), headers)
