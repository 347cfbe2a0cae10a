"""Read the form of a page, decide whether it is ours, and say what became of it."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from signalbox.api.errors import BodyMalformed
from signalbox.api.request import HttpRequest

_MOST_FIELDS = 1200


def form_of(request: HttpRequest) -> dict[str, str]:
    try:
        pairs = parse_qsl(request.body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise BodyMalformed("the body is no form") from None
    return dict(pairs)


def addressed_to_us(request: HttpRequest) -> bool:
    """Say whether the browser names this site as where the form came from; one that names none has SameSite cookies."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin, host = request.headers.get("origin"), request.headers.get("host")
    return origin is None or host is None or origin.partition("://")[2] == host


def same_key(form: Mapping[str, str], key: str) -> bool:
    return hmac.compare_digest(form.get("_form", "").encode(errors="replace"), key.encode())


def outcome(operation: str, answer: Mapping[str, Any]) -> str:
    """Say in a line what an operation did."""
    counts = [
        f"{value:,} {name.replace('_', ' ')}"
        for name, value in answer.items()
        if isinstance(value, int) and not isinstance(value, bool) and value
    ]
    refused = answer.get("refused") or ()
    number = refused["count"] if isinstance(refused, Mapping) else len(refused)
    counts += [f"{number:,} refused"] if number else []
    goes_on = "; the rest follows" if "bulk_action" in answer else "; there is more: ask again"
    more = goes_on if answer.get("more") is True else ""
    return (", ".join(counts) or f"{operation.replace('_', ' ')}: done") + more
