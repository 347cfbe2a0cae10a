"""Read a request of an HTTP API (API Gateway's payload format 2.0)."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, get_args, get_origin
from urllib.parse import parse_qsl

from pydantic.fields import FieldInfo

from signalbox.api.errors import BodyMalformed, BodyTooLarge
from signalbox.errors import PayloadRefused

MOST_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """Describe one request. Its path is as it came, since a name in it may hold an encoded slash."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]  # names in lower case
    body: bytes
    cookies: Sequence[str] = ()  # name=value

    @staticmethod
    def of(event: Mapping[str, Any]) -> HttpRequest:
        """Read the event; refuse a query that names a parameter twice, of which one would be ignored."""
        http = event["requestContext"]["http"]
        query = parse_qsl(event.get("rawQueryString") or "", keep_blank_values=True)
        names = [name for name, _ in query]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise PayloadRefused(f"parameter '{twice}' is given twice", [(twice, "is given twice")])
        return HttpRequest(
            http["method"].upper(),
            event.get("rawPath") or http["path"],
            dict(query),
            {name.lower(): value for name, value in (event.get("headers") or {}).items()},
            _body(event),
            event.get("cookies") or (),
        )

    def require_size(self) -> None:
        if len(self.body) > MOST_BYTES:
            raise BodyTooLarge(f"the body has {len(self.body):,} bytes; at most {MOST_BYTES:,} are taken")

    def json(self) -> dict[str, Any]:
        """Return the body as a JSON object, whatever its type is called: `curl -d` calls it a form."""
        self.require_size()
        if not self.body:
            return {}
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise BodyMalformed(f"the body is no JSON: {error}"[:200]) from None
        if not isinstance(found, dict):
            raise BodyMalformed("the body must be a JSON object")
        return found


def typed(fields: Mapping[str, FieldInfo], name: str, text: str) -> Any:
    """Return the value of a query's or form's field as JSON has it; the operation's own model checks it."""
    found = fields.get(name)
    kinds = {found.annotation, *get_args(found.annotation)} if found else set()
    if bool in kinds and text in ("true", "false"):
        return text == "true"
    if any(get_origin(kind) is list for kind in kinds) and "," in text:
        return text.split(",")
    if any(get_origin(kind) is dict for kind in kinds):
        with suppress(ValueError, RecursionError):
            return json.loads(text)
    for kind in (int, float):
        if kind in kinds:
            with suppress(ValueError):
                return kind(text)
    return text


def _body(event: Mapping[str, Any]) -> bytes:
    text = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return bytes(text, "utf-8", "surrogatepass")
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""
