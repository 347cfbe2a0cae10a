"""Bedrock's stand-in gives boto3 the answers that it was told, in turn."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from signalbox_laptop.stand_ins.bedrock import BedrockStandIn
from tests.support.stand_ins import caller, calls_of, instruct, refused

MODEL = "arn:aws:bedrock:us-east-1::foundation-model/some.model-v1:0"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    stand_in = BedrockStandIn()
    stand_in.start()
    yield stand_in.url
    stand_in.stop()


@pytest.fixture(scope="module")
def bedrock(url: str) -> Any:
    return caller("bedrock-runtime", url)


def converse(bedrock: Any, text: str = "read this", schema: str | None = None) -> Any:
    asked: dict[str, Any] = {"modelId": MODEL, "messages": [{"role": "user", "content": [{"text": text}]}]}
    if schema:
        tool = {"toolSpec": {"name": schema, "inputSchema": {"json": {"type": "object"}}}}
        asked["toolConfig"] = {"tools": [tool], "toolChoice": {"tool": {"name": schema}}}
    return bedrock.converse(**asked)


def content(answer: Any) -> Any:
    return answer["output"]["message"]["content"]


def test_an_object_is_the_forced_tools_input(url: str, bedrock: Any) -> None:
    instruct(url, "answers", [{"schema": "find", "output": {"found": [1, "ü"]}}])
    answer = converse(bedrock, "x" * 100, "find")
    [block] = content(answer)
    assert (block["toolUse"]["name"], block["toolUse"]["input"]) == ("find", {"found": [1, "ü"]})
    assert answer["stopReason"] == "tool_use"
    usage = answer["usage"]
    assert usage["inputTokens"] >= 25
    assert usage["outputTokens"] > 0
    assert usage["totalTokens"] == usage["inputTokens"] + usage["outputTokens"]


def test_a_text_is_sent_as_it_is(url: str, bedrock: Any) -> None:
    instruct(url, "answers", [{"output": '{"not": closed'}, {"output": "cut", "stop_reason": "max_tokens"}])
    whole, cut = converse(bedrock, schema="find"), converse(bedrock)
    assert (content(whole), whole["stopReason"]) == ([{"text": '{"not": closed'}], "end_turn")
    assert (content(cut), cut["stopReason"]) == ([{"text": "cut"}], "max_tokens")


def test_a_call_takes_the_first_unused_answer_that_fits(url: str, bedrock: Any) -> None:
    told = [
        {"schema": "other", "output": "of another tool"},
        {"output": {"needs": "a tool"}},
        {"contains": 'Grün "a"\nb', "output": "of this text"},
        {"output": "of all", "times": 2},
        {"output": "at last", "times": 0},
    ]
    instruct(url, "answers", told)
    texts = ["", 'so Grün "a"\nb', "", "", ""]
    said = [content(converse(bedrock, f"read {text}"))[0]["text"] for text in texts]
    assert said == ["of all", "of this text", "of all", "at last", "at last"]
    assert content(converse(bedrock, schema="other"))[0] == {"text": "of another tool"}


def test_a_call_without_an_answer_left_fails(url: str, bedrock: Any) -> None:
    instruct(url, "answers", [{"schema": "other", "output": {}}])
    with pytest.raises(bedrock.exceptions.InternalServerException, match="no answer left for schema 'find'"):
        converse(bedrock, schema="find")


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "ValidationException"),
        (429, "ThrottlingException"),
        (500, "InternalServerException"),
        (502, "InternalServerException"),
        (503, "ServiceUnavailableException"),
    ],
)
def test_another_status_is_an_error_of_bedrocks(url: str, bedrock: Any, status: int, code: str) -> None:
    instruct(url, "answers", [{"status": status}])
    with pytest.raises(getattr(bedrock.exceptions, code)) as caught:
        converse(bedrock)
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == status


def test_an_answer_that_hangs_outlasts_the_read_timeout(url: str) -> None:
    instruct(url, "answers", [{"hang_seconds": 60, "output": "late"}])
    with pytest.raises(ReadTimeoutError):
        converse(caller("bedrock-runtime", url, read_timeout=0.2))


def test_each_call_is_kept_with_its_schema(url: str, bedrock: Any) -> None:
    instruct(url, "answers", [{"output": {}}])
    converse(bedrock, "keep this", "find")
    last = calls_of(url)[-1]
    assert sorted(last) == ["at", "request", "schema"]
    assert (last["schema"], last["request"]["modelId"]) == ("find", MODEL)
    assert last["request"]["messages"][0]["content"] == [{"text": "keep this"}]
    assert datetime.fromisoformat(last["at"]).utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "answers refused: Invalid JSON"),
        (b"{}", "answers refused: Input should be a valid array"),
        (b'[{"output": "a"}, {"outputs": "b"}]', "1.outputs: Unexpected keyword argument"),
        (b'[{"status": 302}]', "0.status"),
        (b'[{"times": -1}]', "0.times: Input should be greater than or equal to 0"),
        (b'[{"hang_seconds": NaN}]', "0.hang_seconds"),
    ],
)
def test_an_instruction_that_makes_no_sense_changes_nothing(url: str, bedrock: Any, body: bytes, reason: str) -> None:
    instruct(url, "answers", [{"output": "as before"}])
    assert reason in refused(url, "answers", body)
    assert content(converse(bedrock)) == [{"text": "as before"}]


def test_answers_are_added_after_those_before(url: str, bedrock: Any) -> None:
    instruct(url, "answers", [{"output": "first"}])
    instruct(url, "answers", [{"output": "second"}], "POST")
    assert [content(converse(bedrock)) for _ in range(2)] == [[{"text": "first"}], [{"text": "second"}]]


def test_an_unknown_instruction_or_operation_is_refused_with_what_there_is(url: str, bedrock: Any) -> None:
    assert refused(url, "texts", b"{}") == "no instruction PUT texts; there are GET calls, and PUT and POST answers"
    with pytest.raises(ClientError, match="does not know POST /model/m/invoke"):
        bedrock.invoke_model(modelId="m", body=b"{}")
