"""A stand-in for EventBridge as far as publishing needs it, over a socket: keeps what it is told, and can refuse."""

from __future__ import annotations

import json
from typing import Any

from signalbox_laptop.lambda_api.http_server import Request, Response
from tests.support.stand_in import StandIn

JSON = [("Content-Type", "application/x-amz-json-1.1")]


class BusStandIn(StandIn):
    """Owns a server; `told` holds the details of all events, `buses` where they went."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self.buses: set[str] = set()
        self.refuses = False
        super().__init__()

    def _answer(self, request: Request) -> Response:
        if self.refuses:
            # A client error, which the AWS client does not try again.
            return Response(400, b'{"__type": "ValidationException", "message": "no"}', JSON)
        entries = json.loads(request.body)["Entries"]
        self.told += [json.loads(entry["Detail"]) for entry in entries]
        self.buses |= {entry["EventBusName"] for entry in entries}
        answer = {"FailedEntryCount": 0, "Entries": [{"EventId": str(number)} for number in range(len(entries))]}
        return Response(200, json.dumps(answer).encode(), JSON)
