"""A stand-in for SQS as far as lanes need it, over a socket: keeps what it takes, and can be away."""

from __future__ import annotations

import json
from collections import deque
from typing import Any

from signalbox_laptop.lambda_api.http_server import Request, Response
from tests.support.stand_in import StandIn

JSON = [("Content-Type", "application/x-amz-json-1.0")]


class LaneStandIn(StandIn):
    """Owns a server; `sent` holds (lane, entry) of all that it took, oldest first."""

    def __init__(self) -> None:
        self.sent: deque[tuple[str, dict[str, Any]]] = deque()
        self.hidden: deque[tuple[str, int]] = deque()  # (lane, seconds) of messages whose visibility was set
        self.away: set[str] = set()  # lanes that answer nothing but errors
        super().__init__()

    def take(self) -> list[dict[str, Any]]:
        """What has come since the last time, as {"lane", "job_id", "delay", "group"}."""
        found = []
        while self.sent:
            lane, entry = self.sent.popleft()
            body = json.loads(entry["MessageBody"])
            found.append(
                {
                    "lane": lane,
                    "job_id": body["job_id"],
                    "delay": entry["DelaySeconds"],
                    "group": entry["MessageGroupId"],
                }
            )
        return found

    def _answer(self, request: Request) -> Response:
        asked = json.loads(request.body)
        action = request.headers.get("X-Amz-Target", "").rpartition(".")[2]
        if action == "GetQueueUrl":
            return _ok({"QueueUrl": f"{self.url}/000000000000/{asked['QueueName']}"})
        lane = asked["QueueUrl"].rpartition("-")[2]
        if lane in self.away:
            # A client error, which the AWS client does not try again.
            return Response(400, b'{"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "gone"}', JSON)
        if action == "GetQueueAttributes":
            names = ("", "NotVisible", "Delayed")
            depth = sum(name == lane for name, _ in self.sent)
            counts = dict(zip(names, (depth, 0, 0), strict=True))
            return _ok({"Attributes": {f"ApproximateNumberOfMessages{name}": str(n) for name, n in counts.items()}})
        if action == "ChangeMessageVisibilityBatch":
            self.hidden.extend((lane, entry["VisibilityTimeout"]) for entry in asked["Entries"])
            return _ok({"Successful": [{"Id": entry["Id"]} for entry in asked["Entries"]], "Failed": []})
        self.sent.extend((lane, entry) for entry in asked["Entries"])
        taken = [{"Id": entry["Id"], "MessageId": entry["Id"], "MD5OfMessageBody": ""} for entry in asked["Entries"]]
        return _ok({"Successful": taken, "Failed": []})


def _ok(answer: dict[str, Any]) -> Response:
    return Response(200, json.dumps(answer).encode(), JSON)
