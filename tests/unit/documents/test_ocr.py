"""Textract is started once for a token, and looked at until it has read all pages."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config

from signalbox.documents.line import Line
from signalbox.documents.ocr import ScanFailed, Scanned, detect, look, start
from signalbox.packs.outcome import Permanent, RateLimited, Transient
from signalbox.testing.stand_in import Request, Response, StandIn

if TYPE_CHECKING:
    from mypy_boto3_textract import TextractClient


class Textract(StandIn):
    """Give the answers in their order, and keep what was asked."""

    def __init__(self) -> None:
        self.answers: deque[Response] = deque()
        self.asked: list[dict[str, Any]] = []
        super().__init__()

    def answer(self, request: Request) -> Response:
        self.asked.append(json.loads(request.body) | {"call": request.headers["X-Amz-Target"].rpartition(".")[2]})
        return self.answers.popleft()

    def will(self, *answers: dict[str, Any], status: int = 200) -> None:
        self.answers.extend(Response(status, json.dumps(answer).encode()) for answer in answers)


@pytest.fixture
def service() -> Iterator[Textract]:
    with Textract() as service:
        yield service


@pytest.fixture
def textract(service: Textract) -> TextractClient:
    return boto3.client(
        "textract",
        endpoint_url=service.url,
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
        config=Config(retries={"total_max_attempts": 1}),
    )


BOX = {"Left": 0.25, "Top": 0.5, "Width": 0.125, "Height": 0.0625}


def line(page: int, text: str, confidence: float) -> dict[str, Any]:
    place = {"Geometry": {"BoundingBox": BOX}}
    return {"BlockType": "LINE", "Page": page, "Text": text, "Confidence": confidence, **place}


def read(text: str, confidence: float) -> Line:
    return Line(text, confidence, (0.25, 0.5, 0.125, 0.0625))


def test_a_scan_is_started_with_its_token(service: Textract, textract: TextractClient) -> None:
    service.will({"JobId": "7"})
    assert start(textract, "scans", "a/b.pdf", "job-1") == "7"
    location = {"S3Object": {"Bucket": "scans", "Name": "a/b.pdf"}}
    call = {"call": "StartDocumentTextDetection"}
    assert service.asked == [{"DocumentLocation": location, "ClientRequestToken": "job-1"} | call]


def test_nothing_is_there_while_textract_reads(service: Textract, textract: TextractClient) -> None:
    service.will({"JobStatus": "IN_PROGRESS"})
    assert look(textract, "7") is None


def test_lines_of_all_answers_are_put_by_page(service: Textract, textract: TextractClient) -> None:
    word = {"BlockType": "WORD", "Page": 1, "Text": "no", "Confidence": 1.0}
    done = {"JobStatus": "SUCCEEDED", "DocumentMetadata": {"Pages": 4}}
    service.will(
        done | {"NextToken": "2", "Blocks": [{"BlockType": "PAGE", "Page": 1}, line(1, "one", 75), word]},
        done | {"NextToken": "3", "Blocks": [line(1, "two", 50), line(3, "three", 100)]},
        done | {"Blocks": []},
    )
    scanned = look(textract, "7")
    assert scanned == Scanned([[read("one", 0.75), read("two", 0.5)], [], [read("three", 1)], []], 0.75)
    assert scanned.texts == ["one\ntwo", "", "three", ""]
    assert [asked.get("NextToken") for asked in service.asked] == [None, "2", "3"]


def test_a_scan_without_text_has_no_confidence(service: Textract, textract: TextractClient) -> None:
    service.will({"JobStatus": "PARTIAL_SUCCESS", "DocumentMetadata": {"Pages": 1}, "Blocks": []})
    assert look(textract, "7") == Scanned([[]], None, is_partial=True)


def test_a_scan_that_failed_is_permanent_with_its_reason(service: Textract, textract: TextractClient) -> None:
    service.will({"JobStatus": "FAILED", "StatusMessage": "the file is damaged"})
    with pytest.raises(ScanFailed, match="the file is damaged"):
        look(textract, "7")


def test_one_page_is_read_at_once(service: Textract, textract: TextractClient) -> None:
    no_page = {name: value for name, value in line(1, "two", 50).items() if name != "Page"}  # as one page's may be
    service.will({"DocumentMetadata": {"Pages": 1}, "Blocks": [line(1, "one", 75), no_page]})
    assert detect(textract, "scans", "a.png") == Scanned([[read("one", 0.75), read("two", 0.5)]], 0.625)
    document = {"S3Object": {"Bucket": "scans", "Name": "a.png"}}
    assert service.asked == [{"Document": document, "call": "DetectDocumentText"}]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("ProvisionedThroughputExceededException", RateLimited),
        ("LimitExceededException", RateLimited),
        ("InvalidS3ObjectException", Permanent),
        ("UnsupportedDocumentException", Permanent),
        ("InvalidJobIdException", Permanent),
        ("AnythingElse", Transient),
    ],
)
def test_an_error_of_textract_says_whether_a_retry_helps(
    service: Textract, textract: TextractClient, code: str, kind: type[Exception]
) -> None:
    service.will(*[{"__type": code, "message": "secret words"}] * 3, status=400)
    calls = (
        lambda: start(textract, "scans", "a.pdf", "job-1"),
        lambda: look(textract, "7"),
        lambda: detect(textract, "scans", "a.pdf"),
    )
    for call in calls:
        with pytest.raises(kind, match=code) as raised:
            call()
        assert "secret" not in str(raised.value)
