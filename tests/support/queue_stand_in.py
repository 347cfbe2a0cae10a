"""A stand-in for SQS over a socket, for GetQueueUrl and SendMessageBatch: keeps what it takes, refuses on request, and
lets a test act between the moment it has taken messages and its answer.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from typing import Any

from signalbox_laptop.lambda_api.http_server import Request, Response
from tests.support.stand_in import StandIn

JSON = [("Content-Type", "application/x-amz-json-1.0")]


class QueueStandIn(StandIn):
    """Owns a server; `sent` holds what it took, of all queues together."""

    def __init__(self) -> None:
        self.sent: deque[dict[str, Any]] = deque()
        self.calls = 0
        self.takes: int | None = None  # so many messages, then it refuses every call
        self.fails_once: set[str] = set()  # messages that hold such a text are refused once, each by itself
        self.taken: Callable[[], None] = lambda: None
        super().__init__()

    def _answer(self, request: Request) -> Response:
        asked = json.loads(request.body)
        if "QueueName" in asked:
            return Response(200, json.dumps({"QueueUrl": f"{self.url}/1/{asked['QueueName']}"}).encode(), JSON)
        self.calls += 1
        entries = asked["Entries"]
        if self.takes is not None and len(self.sent) + len(entries) > self.takes:
            # A client error, which the AWS client does not try again.
            return Response(400, b'{"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "gone"}', JSON)
        failed = [entry["Id"] for entry in entries if self._fails(entry["MessageBody"])]
        taken = [entry for entry in entries if entry["Id"] not in failed]
        self.sent.extend(json.loads(entry["MessageBody"]) for entry in taken)
        self.taken()
        return Response(200, json.dumps(_outcome(taken, failed)).encode(), JSON)

    def _fails(self, body: str) -> bool:
        found = {text for text in self.fails_once if text in body}
        self.fails_once -= found
        return bool(found)


def _outcome(taken: list[dict[str, Any]], failed: list[str]) -> dict[str, Any]:
    fault = {"Code": "InternalError", "SenderFault": False}
    return {
        "Successful": [{"Id": entry["Id"], "MessageId": entry["Id"], "MD5OfMessageBody": ""} for entry in taken],
        "Failed": [{"Id": id_, **fault} for id_ in failed],
    }
