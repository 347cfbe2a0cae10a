"""Send requests to the HTTP API as API Gateway hands them to the function."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from signalbox.testing.stage import NOON, Stage


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any  # JSON, read, or a text
    headers: dict[str, str]


@dataclass(frozen=True)
class HttpClient:
    """Ask with one token."""

    stage: Stage
    token: str = ""

    def __call__(self, method: str, target: str, body: object = None, *, at: datetime = NOON, **headers: str) -> Answer:
        event = request_event(method, target, body, self.token, **headers)
        answer = self.stage.app.operate(event, self.stage.invocation(at, request_id="request-7"))
        is_json = "json" in answer["headers"].get("content-type", "")
        body = json.loads(answer["body"]) if is_json else answer["body"]
        return Answer(answer["statusCode"], body, answer["headers"])


def request_event(method: str, target: str, body: object = None, token: str = "", **headers: str) -> dict[str, Any]:
    """Return the event of payload format 2.0; a header's underscores are hyphens; a body of text is sent as it is."""
    path, _, query = target.partition("?")
    given = {"content-type": "application/json"} | {name.replace("_", "-"): text for name, text in headers.items()}
    return {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": query,
        "headers": given | ({"authorization": f"Bearer {token}"} if token else {}),
        "requestContext": {"http": {"method": method, "path": path}},
        "isBase64Encoded": False,
    } | ({} if body is None else {"body": body if isinstance(body, str) else json.dumps(body)})


def client_of(stage: Stage, role: str = "operator", tenant: str | None = None, name: str = "tests") -> HttpClient:
    """Return a client with a new token."""
    made = stage.operate("create_token", name=name, role=role, bound_to=tenant, replacing=True)
    return HttpClient(stage, made["token"]["token"])
