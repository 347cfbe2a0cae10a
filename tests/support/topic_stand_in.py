"""A stand-in for SNS's Publish over a socket: keeps what it takes, refuses on request, and lets a test act before it
answers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from urllib.parse import parse_qsl

from signalbox_laptop.lambda_api.http_server import Request, Response
from tests.support.stand_in import StandIn

XML = [("Content-Type", "text/xml")]
TOPIC = "arn:aws:sns:us-east-1:123456789012:operators"
_TAKEN = b"""<PublishResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishResult>
<MessageId>1</MessageId></PublishResult></PublishResponse>"""
# A client error, which the AWS client does not try again.
_REFUSED = b"""<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Type>Sender</Type>
<Code>NotFound</Code><Message>Topic does not exist</Message></Error></ErrorResponse>"""


class TopicStandIn(StandIn):
    """Owns a server; `published` holds the parameters of each call that it took."""

    def __init__(self) -> None:
        self.published: deque[dict[str, str]] = deque()
        self.takes: int | None = None  # so many messages, then it refuses
        self.taken: Callable[[], object] = lambda: None
        super().__init__()

    @property
    def subjects(self) -> list[str]:
        return [message["Subject"] for message in self.published]

    def _answer(self, request: Request) -> Response:
        if self.takes is not None and len(self.published) >= self.takes:
            return Response(404, _REFUSED, XML)
        self.published.append(dict(parse_qsl(request.body.decode())))
        self.taken()
        return Response(200, _TAKEN, XML)
