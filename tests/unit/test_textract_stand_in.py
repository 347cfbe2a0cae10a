"""Textract's stand-in reads what it was told, in its time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from signalbox_laptop.stand_ins.textract import TextractStandIn
from tests.support.stand_ins import caller, calls_of, instruct, refused


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def url(clock: Clock) -> Iterator[str]:
    stand_in = TextractStandIn(clock=clock)
    stand_in.start()
    yield stand_in.url
    stand_in.stop()


@pytest.fixture(scope="module")
def textract(url: str) -> Any:
    return caller("textract", url)


def document(key: str) -> Any:
    return {"S3Object": {"Bucket": "jobs", "Name": key}}


def start(textract: Any, key: str, **asked: str) -> str:
    return str(textract.start_document_text_detection(DocumentLocation=document(key), **asked)["JobId"])


def get(textract: Any, job_id: str, **asked: Any) -> Any:
    return textract.get_document_text_detection(JobId=job_id, **asked)


def lines(answer: Any) -> list[tuple[int, str, float]]:
    found = (block for block in answer["Blocks"] if block["BlockType"] == "LINE")
    return [(line["Page"], line["Text"], line["Confidence"]) for line in found]


def test_pages_and_lines_are_read(url: str, textract: Any) -> None:
    instruct(url, "texts", {"a.pdf": [["one", "zwei: ü"], [], ["three"]], "b": {"pages": [["x"]], "confidence": 41.5}})
    answer = get(textract, start(textract, "a.pdf"))
    assert (answer["JobStatus"], answer["DocumentMetadata"]) == ("SUCCEEDED", {"Pages": 3})
    assert [block["Page"] for block in answer["Blocks"] if block["BlockType"] == "PAGE"] == [1, 2, 3]
    assert lines(answer) == [(1, "one", 99), (1, "zwei: ü", 99), (3, "three", 99)]
    box = next(block for block in answer["Blocks"] if block.get("Text") == "zwei: ü")["Geometry"]["BoundingBox"]
    assert box == {"Left": 0, "Top": 0.5, "Width": 1, "Height": 0.5}
    assert lines(get(textract, start(textract, "b"))) == [(1, "x", 41.5)]


def test_a_token_gives_the_same_job_again(url: str, textract: Any) -> None:
    instruct(url, "texts", {"a": [["x"]], "b": [["y"]]})
    first = start(textract, "a", ClientRequestToken="same")
    assert start(textract, "a", ClientRequestToken="same") == first
    assert start(textract, "a", ClientRequestToken="other") != first
    with pytest.raises(textract.exceptions.IdempotentParameterMismatchException):
        start(textract, "b", ClientRequestToken="same")


def test_a_job_is_in_progress_for_its_seconds(url: str, textract: Any, clock: Clock) -> None:
    instruct(url, "texts", {"slow": {"pages": [["x"]], "seconds": 30}})
    job = start(textract, "slow")
    clock.now += 29.9
    assert get(textract, job)["JobStatus"] == "IN_PROGRESS"
    clock.now += 0.1
    assert get(textract, job)["JobStatus"] == "SUCCEEDED"


def test_a_job_fails_if_told(url: str, textract: Any) -> None:
    instruct(url, "texts", {"bad": {"pages": [], "status": "FAILED"}})
    answer = get(textract, start(textract, "bad"))
    assert (answer["JobStatus"], "Blocks" in answer) == ("FAILED", False)


def test_so_many_calls_of_a_key_are_throttled_first(url: str, textract: Any) -> None:
    throttled = textract.exceptions.ProvisionedThroughputExceededException
    instruct(url, "texts", {"a": {"pages": [["x"]], "throttle": 1}, "b": [["y"]]})
    assert get(textract, start(textract, "b"))["JobStatus"] == "SUCCEEDED"
    with pytest.raises(throttled):
        start(textract, "a")
    job = start(textract, "a")
    instruct(url, "texts", {"a": {"pages": [["x"]], "throttle": 2}})
    for _ in range(2):
        with pytest.raises(throttled):
            get(textract, job)
    assert get(textract, job)["JobStatus"] == "SUCCEEDED"


def test_texts_are_added_to_those_before(url: str, textract: Any) -> None:
    instruct(url, "texts", {"a": [["old"]], "b": [["kept"]]})
    instruct(url, "texts", {"a": [["new"]]}, "POST")
    found = [lines(get(textract, start(textract, key)))[0][1] for key in ("a", "b")]
    assert found == ["new", "kept"]


def test_unknown_keys_and_jobs_are_refused(url: str, textract: Any) -> None:
    instruct(url, "texts", {})
    with pytest.raises(textract.exceptions.InvalidS3ObjectException):
        start(textract, "gone")
    with pytest.raises(textract.exceptions.InvalidJobIdException):
        get(textract, "0" * 32)


def test_more_than_a_thousand_blocks_come_in_pages(url: str, textract: Any) -> None:
    text = [[f"{page}.{line}" for line in range(500)] for page in range(5)]
    instruct(url, "texts", {"long": text})
    job = start(textract, "long")
    answers = [get(textract, job)]
    while token := answers[-1].get("NextToken"):
        answers.append(get(textract, job, NextToken=token))
    assert [len(answer["Blocks"]) for answer in answers] == [1000, 1000, 505]
    assert [line for answer in answers for _, line, _ in lines(answer)] == [line for page in text for line in page]
    assert len(get(textract, job, MaxResults=10)["Blocks"]) == 10
    with pytest.raises(textract.exceptions.InvalidParameterException):
        get(textract, job, NextToken="rubbish")


def test_one_page_is_read_at_once(url: str, textract: Any) -> None:
    instruct(url, "texts", {"one.png": [["x"]], "two.pdf": [["x"], ["y"]]})
    assert lines(textract.detect_document_text(Document=document("one.png"))) == [(1, "x", 99)]
    with pytest.raises(textract.exceptions.UnsupportedDocumentException):
        textract.detect_document_text(Document=document("two.pdf"))


def test_each_call_is_kept_with_its_name(url: str, textract: Any) -> None:
    instruct(url, "texts", {"kept": [["x"]]})
    job = start(textract, "kept", ClientRequestToken="keep")
    get(textract, job)
    started, got = calls_of(url)[-2:]
    assert sorted(started) == ["at", "name", "request"]
    assert started["name"] == "StartDocumentTextDetection"
    assert started["request"] == {"DocumentLocation": document("kept"), "ClientRequestToken": "keep"}
    assert (got["name"], got["request"]) == ("GetDocumentTextDetection", {"JobId": job})


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"[]", "texts refused: Input should be"),
        (b'{"a": ["no page"]}', "a."),
        (b'{"a": {"pages": [], "status": "LOST"}}', "Input should be 'SUCCEEDED' or 'FAILED'"),
        (b'{"a": {"pages": [], "confidence": 101}}', "less than or equal to 100"),
        (b"\xff", "texts refused: Invalid JSON"),
    ],
)
def test_an_instruction_that_makes_no_sense_is_refused(url: str, body: bytes, reason: str) -> None:
    assert reason in refused(url, "texts", body)
