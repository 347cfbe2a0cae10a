"""Serve one request of the HTTP API.

    request → caller → route → operation → response

A refusal becomes a problem that names the field and the cure. Whatever else goes wrong is logged under the request's
id, and the caller gets no more than that id.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import psycopg

from signalbox.access.caller import Caller
from signalbox.access.tokens import PREFIX, find_caller
from signalbox.api.idempotency import once
from signalbox.api.request import HttpRequest, typed
from signalbox.api.response import HttpResponse, failure, json_response, problem, unless_known
from signalbox.api.routes import WHO, Route, find_route
from signalbox.errors import DatabaseUnavailable, PayloadRefused, SignalboxError, Unauthenticated
from signalbox.invocation import Invocation, Resources
from signalbox.runtime.metrics import write_line

# API Gateway gives up on a function after 30 seconds, and its caller hears nothing of what was done.
_MOST_SECONDS = 28.0
OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def serve(resources: Resources, event: Mapping[str, Any], invocation: Invocation) -> dict[str, Any]:
    """Answer the event of an HTTP API."""
    return respond(resources, event, invocation, Responder(_answer, problem, failure))


@dataclass(frozen=True, slots=True)
class Responder:
    """Say how requests are answered, and what one who is refused reads, or who meets an error of ours."""

    answer: Callable[[Resources, HttpRequest, Invocation], HttpResponse]
    refused: Callable[[SignalboxError, str], HttpResponse]
    failed: Callable[[str], HttpResponse]


def respond(
    resources: Resources, event: Mapping[str, Any], invocation: Invocation, responder: Responder
) -> dict[str, Any]:
    """Answer the event whatever happens: log what went wrong, under the request's id."""
    request_id = invocation.request_id
    invocation = replace(invocation, ends_at=min(invocation.ends_at, time.monotonic() + _MOST_SECONDS))
    try:
        request = HttpRequest.of(event)
        response = unless_known(request, responder.answer(resources, request, invocation))
    except (DatabaseUnavailable, psycopg.OperationalError) as error:
        write_line(resources.settings.stack, "database.unreachable", {"DatabaseUnreachable": 1})
        gone = DatabaseUnavailable("the connection to the database was lost: send the request again")
        response = responder.refused(error if isinstance(error, DatabaseUnavailable) else gone, request_id)
    except SignalboxError as error:
        resources.log.info("request.refused", extra={"error": type(error).__name__})
        response = responder.refused(error, request_id)
    except Exception:
        resources.log.exception("request.failed")
        write_line(resources.settings.stack, "request.counted", {"RequestsFailed": 1})
        response = responder.failed(request_id)
    return response.with_headers(x_request_id=request_id, x_content_type_options="nosniff").as_event()


def _answer(resources: Resources, request: HttpRequest, invocation: Invocation) -> HttpResponse:
    caller = _authenticate(resources, request, invocation)
    if (request.method, request.path) == ("GET", "/openapi.json"):
        from signalbox.api.openapi import openapi  # most execution environments never describe themselves

        return json_response(200, openapi())
    route, in_path = find_route(request.method, request.path)
    given = _params(route, request, in_path)
    invocation = replace(invocation, caller=caller)

    def run() -> HttpResponse:
        answer = route.operation.run(resources, _named(route, given, caller), invocation)
        if route.shape == "text":
            return HttpResponse(200, answer["text"], {"content-type": OPEN_METRICS})
        return json_response(*route.shown(answer))

    key = request.headers.get("idempotency-key")
    if key is None or request.method != "POST":
        return run()
    if route.name == "submit_jobs":  # whose jobs have keys of their own, as safe as their commit
        given = {**given, "jobs": _with_keys(given.get("jobs"), key)}
        return run()
    return once(resources.database.connection(), request, caller, key, run)


def _authenticate(resources: Resources, request: HttpRequest, invocation: Invocation) -> Caller:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise Unauthenticated("send the header `Authorization: Bearer TOKEN`; `signalbox tokens create` makes a token")
    token, issuer = token.strip(), resources.settings.jwt_issuer
    if issuer is None or token.startswith(PREFIX):
        return find_caller(resources.database.connection(), token)
    from signalbox.api.issuer import find_caller_of_issuer  # few stacks take such tokens, and its library is large

    return find_caller_of_issuer(issuer, token, invocation.clock)


def _params(route: Route, request: HttpRequest, in_path: Mapping[str, str]) -> dict[str, Any]:
    """Return the operation's params: what the path says, and beside it the query of a GET or the body of others."""
    if request.method == "GET":
        return route.params(in_path, {name: typed(route.fields, name, text) for name, text in request.query.items()})
    if request.query:
        raise PayloadRefused(f"{request.method} takes its params in a JSON body, not in the query")
    return route.params(in_path, request.json())


def _with_keys(jobs: Any, key: str) -> Any:
    """Return the jobs with the request's key, numbered where there are several, in place of one of their own."""
    if not isinstance(jobs, list):
        return jobs
    keys = [key] if len(jobs) == 1 else [f"{key}#{number}" for number in range(len(jobs))]
    return [
        {"idempotency_key": own, **job} if isinstance(job, dict) else job for own, job in zip(keys, jobs, strict=True)
    ]


def _named(route: Route, params: dict[str, Any], caller: Caller) -> dict[str, Any]:
    """Return the params with who asks, where the operation records it."""
    return {**params, **dict.fromkeys(WHO & route.operation.model.model_fields.keys(), caller.name)}
