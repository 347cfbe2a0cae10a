"""Stand in for the calls of AWS that the engine makes: to Lambda, SQS, SNS and EventBridge.

The stand-in keeps what it receives, refuses on request, and lets a test act between a call and its answer.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

from signalbox.testing.stand_in import Request, Response, StandIn

_INVOKE = re.compile(r"/2015-03-31/functions/([^/]+)/invocations")
_PUBLISHED = b"""<PublishResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishResult>
<MessageId>1</MessageId></PublishResult></PublishResponse>"""
# Client errors, which the AWS client does not try again.
_NO_QUEUE = Response(400, b'{"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "gone"}')
_NO_BUS = Response(400, b'{"__type": "ValidationException", "message": "no"}')
_NO_TOPIC = b"""<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Type>Sender</Type>
<Code>NotFound</Code><Message>Topic does not exist</Message></Error></ErrorResponse>"""


class AwsStandIn(StandIn):
    """Own a server; each deque holds the requests to one service, oldest first."""

    def __init__(self) -> None:
        self.invoked: deque[tuple[str, dict[str, Any]]] = deque()  # (function, payload)
        self.sent: deque[tuple[str, dict[str, Any]]] = deque()  # (queue, entry)
        self.hidden: deque[tuple[str, int]] = deque()  # (queue, seconds) of messages whose visibility was set
        self.published: deque[dict[str, str]] = deque()  # the parameters of each call
        self.events: deque[dict[str, Any]] = deque()  # entries of a bus
        self.away: set[str] = set()  # "lambda", "topic", "bus", or the last word of a queue's name: they refuse
        self.takes: int | None = None  # takes this many messages, then queues and topics refuse
        self.fails_once: set[str] = set()  # messages that hold such a text are refused once, each by itself
        self.taken: Callable[[], object] = lambda: None
        self.calls = 0  # the number of calls that brought messages
        super().__init__()

    @property
    def payloads(self) -> list[dict[str, Any]]:
        """Return the payloads that functions were invoked with."""
        return [payload for _, payload in self.invoked]

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """Return the bodies that were sent to all queues together."""
        return [json.loads(entry["MessageBody"]) for _, entry in self.sent]

    @property
    def details(self) -> list[dict[str, Any]]:
        """Return the details of the events of all buses."""
        return [json.loads(entry["Detail"]) for entry in self.events]

    def take(self) -> list[dict[str, Any]]:
        """Take what has come to the lanes since the last call."""
        found = []
        while self.sent:
            lane, entry = self.sent.popleft()
            told = {"lane": lane.rpartition("-")[2], "delay": entry["DelaySeconds"], "group": entry["MessageGroupId"]}
            found.append({"job_id": json.loads(entry["MessageBody"])["job_id"]} | told)
        return found

    def answer(self, request: Request) -> Response:
        if found := _INVOKE.fullmatch(request.path):
            return self._invoke(found[1], request.body)
        service, _, action = request.headers.get("X-Amz-Target", "").rpartition(".")
        if service == "AmazonSQS":
            return self._queue(action, json.loads(request.body))
        if service == "AWSEvents":
            return self._put_events(json.loads(request.body)["Entries"])
        if b"Action=Publish" in request.body:
            return self._publish(request.body)
        return Response(400, b'{"__type": "UnknownOperation", "message": "this stand-in does not know the call"}')

    def _invoke(self, function: str, payload: bytes) -> Response:
        if "lambda" in self.away:
            return Response(503, b'{"Type": "Server", "message": "try later"}')
        self.invoked.append((function, json.loads(payload)))
        return Response(202)

    def _queue(self, action: str, asked: dict[str, Any]) -> Response:
        if action == "GetQueueUrl":
            return _ok({"QueueUrl": f"{self.url}/000000000000/{asked['QueueName']}"})
        queue = asked["QueueUrl"].rpartition("/")[2]
        if self._is_away(queue):
            return _NO_QUEUE
        if action == "GetQueueAttributes":
            return _ok({"Attributes": self._depth(queue)})
        if action == "ChangeMessageVisibilityBatch":
            self.hidden.extend((queue, entry["VisibilityTimeout"]) for entry in asked["Entries"])
            return _ok({"Successful": [{"Id": entry["Id"]} for entry in asked["Entries"]], "Failed": []})
        return self._send(queue, asked["Entries"])

    def _send(self, queue: str, entries: list[dict[str, Any]]) -> Response:
        self.calls += 1
        if self.takes is not None and len(self.sent) + len(entries) > self.takes:
            return _NO_QUEUE
        failed = [entry for entry in entries if self._fails(entry["MessageBody"])]
        taken = [entry for entry in entries if entry not in failed]
        self.sent.extend((queue, entry) for entry in taken)
        self.taken()
        done = [{"Id": entry["Id"], "MessageId": entry["Id"], "MD5OfMessageBody": ""} for entry in taken]
        faults = [{"Id": entry["Id"], "Code": "InternalError", "SenderFault": False} for entry in failed]
        return _ok({"Successful": done, "Failed": faults})

    def _fails(self, body: str) -> bool:
        found = {text for text in self.fails_once if text in body}
        self.fails_once -= found
        return bool(found)

    def _depth(self, queue: str) -> dict[str, str]:
        visible = sum(name == queue for name, _ in self.sent)
        counts = {"": visible, "NotVisible": 0, "Delayed": 0}
        return {f"ApproximateNumberOfMessages{name}": str(number) for name, number in counts.items()}

    def _put_events(self, entries: list[dict[str, Any]]) -> Response:
        if "bus" in self.away:
            return _NO_BUS
        self.events.extend(entries)
        return _ok({"FailedEntryCount": 0, "Entries": [{"EventId": str(number)} for number in range(len(entries))]})

    def _publish(self, body: bytes) -> Response:
        if "topic" in self.away or (self.takes is not None and len(self.published) >= self.takes):
            return Response(404, _NO_TOPIC, [("Content-Type", "text/xml")])
        self.published.append(dict(parse_qsl(body.decode())))
        self.taken()
        return Response(200, _PUBLISHED, [("Content-Type", "text/xml")])

    def _is_away(self, queue: str) -> bool:
        return queue.rpartition("-")[2] in self.away


def _ok(answer: dict[str, Any]) -> Response:
    return Response(200, json.dumps(answer).encode(), [("Content-Type", "application/x-amz-json-1.0")])
