"""Answer requests by the functions of packs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from signalbox.api.errors import RouteUnknown
from signalbox.api.request import HttpRequest
from signalbox.api.response import HttpResponse, failure, problem
from signalbox.api.routes import match_path
from signalbox.api.serve import Responder, respond
from signalbox.invocation import Invocation, Resources
from signalbox.packs.pack import Pack


def is_of_a_pack(packs: Iterable[Pack], path: str) -> bool:
    return any(match_path(route.path, path) is not None for pack in packs for route in pack.routes)


def serve_pack_route(resources: Resources, event: Mapping[str, Any], invocation: Invocation) -> dict[str, Any]:
    """Answer the event of an HTTP API."""
    return respond(resources, event, invocation, Responder(_answer, problem, failure))


def _answer(resources: Resources, request: HttpRequest, invocation: Invocation) -> HttpResponse:
    for route in (route for pack in resources.packs for route in pack.routes if route.method == request.method):
        in_path = match_path(route.path, request.path)
        if in_path is not None:
            module, _, name = route.function.rpartition(".")
            response: HttpResponse = getattr(import_module(module), name)(resources, request, in_path, invocation)
            return response
    raise RouteUnknown(f"nothing is served at {request.method[:20]} {request.path[:200]}")
