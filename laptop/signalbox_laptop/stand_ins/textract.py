"""Stand in for Textract's text detection: `PUT /_stand_in/texts` says what it reads in each object of S3, by its key.

Neither the bucket nor the object is looked at. A job keeps the text that its key had when it was started.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from uuid import uuid4

from pydantic import Field, TypeAdapter

from signalbox_laptop.lambda_api.http_server import Request, Response
from signalbox_laptop.stand_ins.faults import Count, Seconds
from signalbox_laptop.stand_ins.service_stand_in import (
    STRICT,
    CallRefused,
    ServiceStandIn,
    json_response,
    read_object,
    unknown_operation,
)

_MOST_BLOCKS = 1000
_MODEL = "1.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Say what is read in an object, and how it goes."""

    pages: list[list[str]]  # of lines
    confidence: Annotated[float, Field(ge=0, le=100)] = 99
    seconds: Seconds = 0  # in progress
    status: Literal["SUCCEEDED", "FAILED"] = "SUCCEEDED"
    throttle: Count = 0  # so many calls are throttled first


@dataclass(frozen=True, slots=True)
class _Job:
    key: str
    text: Text
    done_at: float


class TextractStandIn(ServiceStandIn):
    """Own the texts and the jobs."""

    instruction = "texts"
    reader = TypeAdapter(dict[str, list[list[str]] | Text], config=STRICT)

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._texts: dict[str, Text] = {}
        self._throttled: Counter[str] = Counter()
        self._jobs: dict[str, _Job] = {}
        self._tokens: dict[str, str] = {}
        self._lock = threading.Lock()
        self._operations: Mapping[str, Callable[[dict[str, Any]], Any]] = {
            "StartDocumentTextDetection": self._start,
            "GetDocumentTextDetection": self._get,
            "DetectDocumentText": self._detect,
        }

    def take(self, told: Mapping[str, list[list[str]] | Text]) -> None:
        with self._lock:
            self._texts.clear()
            self._throttled.clear()
        self.add(told)

    def add(self, told: Mapping[str, list[list[str]] | Text]) -> None:
        texts = {key: one if isinstance(one, Text) else Text(pages=one) for key, one in told.items()}
        with self._lock:
            self._texts |= texts
            for key, text in texts.items():
                self._throttled[key] = text.throttle

    def serve(self, request: Request) -> Response:
        name = request.headers.get("X-Amz-Target", "").removeprefix("Textract.")
        if name not in self._operations:
            raise unknown_operation(request)
        asked = read_object(request)
        self.keep(name=name, request=asked)
        with self._lock:
            return json_response(self._operations[name](asked))

    def _start(self, asked: dict[str, Any]) -> Any:
        key = _key_of(asked.get("DocumentLocation"))
        text = self._text(key)
        token = asked.get("ClientRequestToken") or str(uuid4())
        job_id = self._tokens.setdefault(token, uuid4().hex)
        job = self._jobs.setdefault(job_id, _Job(key, text, self._clock() + text.seconds))
        if job.key != key:
            raise CallRefused(400, "IdempotentParameterMismatchException", "the token was used for another document")
        return {"JobId": job_id}

    def _get(self, asked: dict[str, Any]) -> Any:
        job = self._jobs.get(str(asked.get("JobId")))
        if job is None:
            raise CallRefused(400, "InvalidJobIdException", "no job has this JobId")
        self._throttle(job.key)
        if self._clock() < job.done_at:
            return _state("IN_PROGRESS")
        if job.text.status == "FAILED":
            return _state("FAILED") | {"StatusMessage": "as the stand-in was told"}
        start, most = _page(asked)
        blocks = list(_blocks(job.text))
        rest = {"NextToken": str(start + most)} if start + most < len(blocks) else {}
        return _state("SUCCEEDED") | _read(job.text) | {"Blocks": blocks[start : start + most]} | rest

    def _detect(self, asked: dict[str, Any]) -> Any:
        text = self._text(_key_of(asked.get("Document")))
        if text.status == "FAILED" or len(text.pages) > 1:
            raise CallRefused(400, "UnsupportedDocumentException", "the document can't be read at once")
        return _read(text) | {"Blocks": list(_blocks(text)), "DetectDocumentTextModelVersion": _MODEL}

    def _text(self, key: str) -> Text:
        if key not in self._texts:
            raise CallRefused(400, "InvalidS3ObjectException", "the stand-in was told no text for this key")
        self._throttle(key)
        return self._texts[key]

    def _throttle(self, key: str) -> None:
        if self._throttled[key] > 0:
            self._throttled[key] -= 1
            raise CallRefused(400, "ProvisionedThroughputExceededException", "as the stand-in was told")


def _key_of(document: object) -> str:
    match document:
        case {"S3Object": {"Name": str(key)}}:
            return key
    raise CallRefused(400, "InvalidParameterException", "the document names no object of S3")


def _page(asked: dict[str, Any]) -> tuple[int, int]:
    """Return the first block's place and the most blocks."""
    token, most = asked.get("NextToken", "0"), asked.get("MaxResults", _MOST_BLOCKS)
    if not (isinstance(token, str) and token.isdecimal() and isinstance(most, int) and most > 0):
        raise CallRefused(400, "InvalidParameterException", "NextToken or MaxResults is wrong")
    return int(token), min(most, _MOST_BLOCKS)


def _state(status: str) -> dict[str, Any]:
    return {"JobStatus": status, "DetectDocumentTextModelVersion": _MODEL}


def _read(text: Text) -> dict[str, Any]:
    return {"DocumentMetadata": {"Pages": len(text.pages)}}


def _blocks(text: Text) -> Iterator[dict[str, Any]]:
    for page, lines in enumerate(text.pages, 1):
        ids = [f"line-{page}-{line}" for line in range(1, len(lines) + 1)]
        children = [{"Type": "CHILD", "Ids": ids}] if ids else []
        yield {"BlockType": "PAGE", "Id": f"page-{page}", "Page": page, **_box(0, 1), "Relationships": children}
        for place, (id_, line) in enumerate(zip(ids, lines, strict=True)):
            read = {"Text": line, "Confidence": text.confidence, **_box(place, len(lines))}
            yield {"BlockType": "LINE", "Id": id_, "Page": page, **read}


def _box(place: int, lines: int) -> dict[str, Any]:
    """Share the page's height among its lines."""
    return {"Geometry": {"BoundingBox": {"Left": 0, "Top": place / lines, "Width": 1, "Height": 1 / lines}}}
