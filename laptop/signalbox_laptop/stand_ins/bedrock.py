"""Stand in for Bedrock's Converse: a model that answers what it was told, in turn.

`PUT /_stand_in/answers` replaces all answers. A call takes the first that fits and is not used up; with none left it
fails with 500. An object is the input of the tool that the call forces, so that it fits no call without one.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal
from urllib.parse import unquote
from uuid import uuid4

from pydantic import TypeAdapter

from signalbox_laptop.lambda_api.http_server import Request, Response
from signalbox_laptop.stand_ins.faults import Count, Refusal, Seconds
from signalbox_laptop.stand_ins.service_stand_in import (
    STRICT,
    CallRefused,
    ServiceStandIn,
    json_response,
    read_object,
    unknown_operation,
)

_CONVERSE = re.compile(r"/model/(?P<model>[^/]+)/converse")
_CHARACTERS_PER_TOKEN = 4
_ERRORS = {
    400: "ValidationException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Say what the model answers to the calls that it fits."""

    schema: str | None = None  # the forced tool's name; None: any
    contains: str | None = None  # part of a text in the request; None: any
    output: dict[str, Any] | str | None = None  # an object is the tool's input
    stop_reason: str | None = None  # None: as after success
    status: Literal[200] | Refusal = 200
    times: Count = 1  # 0: always
    hang_seconds: Seconds = 0  # before anything else

    def fits(self, schema: str | None, text: str) -> bool:
        answerable = schema is not None or not isinstance(self.output, dict)
        return answerable and self.schema in (None, schema) and (self.contains or "") in text


class BedrockStandIn(ServiceStandIn):
    """Own the answers, used up in their order."""

    instruction = "answers"
    reader = TypeAdapter(list[Answer], config=STRICT)

    def __init__(self) -> None:
        super().__init__()
        self._answers: list[tuple[Answer, int]] = []
        self._lock = threading.Lock()

    def take(self, told: Sequence[Answer]) -> None:
        with self._lock:
            self._answers = [(answer, 0) for answer in told]

    def add(self, told: Sequence[Answer]) -> None:
        with self._lock:
            self._answers += [(answer, 0) for answer in told]

    def serve(self, request: Request) -> Response:
        call = _CONVERSE.fullmatch(request.path)
        if call is None or request.method != "POST":
            raise unknown_operation(request)
        asked = {"modelId": unquote(call["model"]), **read_object(request)}
        schema, text = _forced_tool(asked), "\n".join(_texts(asked))
        self.keep(schema=schema, request=asked)
        answer = self._next(schema, text)
        if answer is None:
            raise CallRefused(500, "InternalServerException", f"the stand-in has no answer left for schema {schema!r}")
        self.hang(answer.hang_seconds)
        if answer.status != 200:
            default = "InternalServerException" if answer.status >= 500 else "ValidationException"
            raise CallRefused(answer.status, _ERRORS.get(answer.status, default), "as the stand-in was told")
        return json_response(_converse_answer(answer, schema, text))

    def _next(self, schema: str | None, text: str) -> Answer | None:
        with self._lock:
            for at, (answer, used) in enumerate(self._answers):
                if (not answer.times or used < answer.times) and answer.fits(schema, text):
                    self._answers[at] = (answer, used + 1)
                    return answer
        return None


def _converse_answer(answer: Answer, schema: str | None, text: str) -> Any:
    output = answer.output or ""
    content: dict[str, Any] = {"text": output}
    if isinstance(output, dict):
        content = {"toolUse": {"toolUseId": f"tooluse_{uuid4().hex}", "name": schema, "input": output}}
    tokens = [_tokens(text), _tokens("\n".join(_texts(content)))]
    return {
        "output": {"message": {"role": "assistant", "content": [content]}},
        "stopReason": answer.stop_reason or ("tool_use" if "toolUse" in content else "end_turn"),
        "usage": {"inputTokens": tokens[0], "outputTokens": tokens[1], "totalTokens": sum(tokens)},
        "metrics": {"latencyMs": 1},
    }


def _forced_tool(asked: dict[str, Any]) -> str | None:
    match asked:
        case {"toolConfig": {"toolChoice": {"tool": {"name": str(name)}}}}:
            return name
    return None


def _texts(value: Any) -> Iterator[str]:
    """Yield each text in a JSON value, without the escapes that JSON would write."""
    match value:
        case str():
            yield value
        case dict() | list():
            for one in value.values() if isinstance(value, dict) else value:
                yield from _texts(one)


def _tokens(text: str) -> int:
    return ceil(len(text) / _CHARACTERS_PER_TOKEN)
