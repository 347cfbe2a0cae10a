"""Stand in for SNS: it takes every message, and passes it on to moto, whose topics have the stack's subscribers.

A message to a topic that moto does not know is taken all the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar
from urllib.parse import parse_qsl
from uuid import uuid4
from xml.sax.saxutils import escape

from signalbox_laptop.lambda_api.http_server import Request, Response
from signalbox_laptop.stand_ins.message_stand_in import Message, MessageStandIn
from signalbox_laptop.stand_ins.service_stand_in import CallRefused

_XMLNS = 'xmlns="http://sns.amazonaws.com/doc/2010-03-31/"'


class SnsStandIn(MessageStandIn):
    """Take the messages, in SNS's query protocol."""

    errors: ClassVar = {
        400: "InvalidParameter",
        403: "AuthorizationError",
        404: "NotFound",
        429: "Throttling",
        500: "InternalError",
    }

    def read(self, request: Request) -> Message | None:
        params = dict(parse_qsl(request.body.decode(errors="replace"), keep_blank_values=True))
        name = params.pop("Action", "")
        if name not in ("Publish", "PublishBatch"):
            return None
        params.pop("Version", None)
        return Message(name, _parameters(params.items()))

    def accept(self, request: Request, message: Message) -> Response:
        passed_on = self.moto.answer(request) if self.moto else None
        if passed_on is not None and passed_on.status != 404:
            return passed_on
        if message.name == "Publish":
            return _xml("Publish", _message_id())
        ids = _ids(message.request.get("PublishBatchRequestEntries"))
        taken = "".join(f"<member><Id>{escape(id_)}</Id>{_message_id()}</member>" for id_ in ids)
        return _xml("PublishBatch", f"<Successful>{taken}</Successful><Failed/>")

    def refuse(self, refusal: CallRefused) -> Response:
        error = f"<Error><Code>{refusal.code}</Code><Message>{escape(str(refusal))}</Message></Error>"
        body = f"<ErrorResponse {_XMLNS}>{error}<RequestId>{uuid4()}</RequestId></ErrorResponse>"
        return Response(refusal.status, body.encode(), [("Content-Type", "text/xml")])


def _parameters(params: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the parameters as boto3 takes them: `List.member.1.Id` is in a list, `Map.entry.1.Name` in a map."""
    tree: dict[str, Any] = {}
    try:
        for name, value in params:
            *path, last = name.split(".")
            place = tree
            for part in path:
                place = place.setdefault(part, {})
            place[last] = value
        return {name: _plain(value) for name, value in tree.items()}
    except (AttributeError, KeyError, TypeError):
        raise CallRefused(400, "InvalidParameter", "the parameters contradict one another") from None


def _plain(value: Any) -> Any:
    match value:
        case {"member": members}:
            return [_plain(one) for one in members.values()]
        case {"entry": entries}:
            return {one["Name"]: _plain(one["Value"]) for one in entries.values()}
        case dict():
            return {name: _plain(one) for name, one in value.items()}
    return value


def _ids(entries: object) -> list[str]:
    if not isinstance(entries, list) or not all(isinstance(one, dict) and "Id" in one for one in entries):
        raise CallRefused(400, "InvalidParameter", "a batch needs entries that each have an Id")
    return [str(one["Id"]) for one in entries]


def _message_id() -> str:
    return f"<MessageId>{uuid4()}</MessageId>"


def _xml(name: str, result: str) -> Response:
    metadata = f"<ResponseMetadata><RequestId>{uuid4()}</RequestId></ResponseMetadata>"
    body = f"<{name}Response {_XMLNS}><{name}Result>{result}</{name}Result>{metadata}</{name}Response>"
    return Response(200, body.encode(), [("Content-Type", "text/xml")])
