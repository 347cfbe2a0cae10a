"""One question is one call, within the attempt's time; its tokens are counted, and its texts reach no log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from threading import Event
from typing import Any

import pytest

from signalbox.aws.clients import converse_client
from signalbox.budget import Budget
from signalbox.documents.model import AnswerCut, AnswerMissing, AnswerWithheld, Bedrock, Prices, Question, ask
from signalbox.packs.outcome import Permanent, RateLimited, Transient
from signalbox.testing.stand_in import Request, Response, StandIn

QUESTION = Question(
    model_id="some.model-v1",
    system="Read the invoice.",
    text="secret invoice",
    tool_name="record_invoice",
    tool_description="Record what the invoice says.",
    schema={"type": "object", "properties": {"total": {"type": "number"}}},
    max_tokens=500,
    most_seconds=30,
)
USED = {"toolUse": {"toolUseId": "1", "name": "record_invoice", "input": {"total": 12.5}}}


class Model(StandIn):
    """Give one answer, and keep what was asked."""

    def __init__(self) -> None:
        self.response: Response | None = said(USED)
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.may_answer = Event()
        self.may_answer.set()
        super().__init__()

    def answer(self, request: Request) -> Response | None:
        self.asked.append((request.path, json.loads(request.body)))
        self.may_answer.wait()
        return self.response


def said(*content: dict[str, Any], stop_reason: str = "tool_use") -> Response:
    answer = {
        "output": {"message": {"role": "assistant", "content": list(content)}},
        "stopReason": stop_reason,
        "usage": {"inputTokens": 1200, "outputTokens": 40, "totalTokens": 1240},
        "metrics": {"latencyMs": 1},
    }
    return Response(200, json.dumps(answer).encode(), [("Content-Type", "application/json")])


def refused(code: str) -> Response:
    return Response(400, b'{"message": "secret words"}', [("x-amzn-ErrorType", code)])


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    with Model() as model:
        names = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_DEFAULT_REGION": "us-east-1"}
        for name, value in ({"AWS_ENDPOINT_URL_BEDROCK_RUNTIME": model.url} | names).items():
            monkeypatch.setenv(name, value)
        yield model
        model.may_answer.set()


def test_the_answer_is_the_input_of_the_tool(model: Model) -> None:
    model.response = said({"text": "I record it."}, USED)
    answer = ask(Bedrock("stack"), QUESTION, Budget.of(60))
    assert (answer.output, answer.input_tokens, answer.output_tokens) == ({"total": 12.5}, 1200, 40)
    ((path, asked),) = model.asked
    assert path == "/model/some.model-v1/converse"
    assert asked["toolConfig"]["toolChoice"] == {"tool": {"name": "record_invoice"}}
    assert asked["messages"] == [{"role": "user", "content": [{"text": "secret invoice"}]}]
    assert asked["inferenceConfig"] == {"maxTokens": 500}
    ask(Bedrock("stack"), replace(QUESTION, temperature=0), Budget.of(60))
    assert model.asked[-1][1]["inferenceConfig"] == {"maxTokens": 500, "temperature": 0}


@pytest.mark.parametrize(("prices", "cost"), [(None, None), (Prices(3, 15), 1200 * 3 + 40 * 15)])
def test_tokens_and_cost_are_counted_without_any_text(
    model: Model, capsys: pytest.CaptureFixture[str], prices: Prices | None, cost: int | None
) -> None:
    ask(Bedrock("stack"), replace(QUESTION, prices=prices), Budget.of(60))
    (printed,) = capsys.readouterr().out.splitlines()
    line = json.loads(printed)
    assert (line["message"], line["service"], line["model_id"]) == ("model.asked", "stack", "some.model-v1")
    assert (line["ModelInputTokens"], line["ModelOutputTokens"]) == ([1200], [40])
    assert line.get("ModelCostMicroUsd") == (cost and [cost])
    assert "secret" not in printed
    assert "12.5" not in printed


@pytest.mark.parametrize(
    ("response", "kind", "words"),
    [
        (said(USED, stop_reason="max_tokens"), AnswerCut, "max_tokens"),
        (said(stop_reason="content_filtered"), AnswerWithheld, "withheld"),
        (said(stop_reason="guardrail_intervened"), AnswerWithheld, "withheld"),
        (said(USED, stop_reason="malformed_tool_use"), AnswerMissing, "malformed_tool_use"),
        (said(USED, stop_reason="malformed_model_output"), AnswerMissing, "malformed_model_output"),
        (said({"text": "No."}, stop_reason="end_turn"), AnswerMissing, "did not answer by record_invoice"),
        (said({"toolUse": USED["toolUse"] | {"input": "12.5"}}), AnswerMissing, "did not answer by"),
        (said({"toolUse": USED["toolUse"] | {"name": "other"}}), AnswerMissing, "did not answer by"),
        (refused("ThrottlingException"), RateLimited, "ThrottlingException"),
        (refused("ValidationException"), Permanent, "ValidationException"),
        (refused("AccessDeniedException"), Permanent, "denies"),
        (refused("ModelTimeoutException"), Transient, "ModelTimeoutException"),
        (None, Transient, "no answer"),
    ],
)
def test_what_is_no_answer_says_whether_a_retry_helps(
    model: Model, response: Response | None, kind: type[Exception], words: str
) -> None:
    model.response = response
    with pytest.raises(kind, match=words) as raised:
        ask(Bedrock("stack"), QUESTION, Budget.of(60))
    assert type(raised.value) is kind
    assert "secret" not in str(raised.value)
    assert len(model.asked) == 1


def test_an_answer_that_was_cut_is_counted(model: Model, capsys: pytest.CaptureFixture[str]) -> None:
    model.response = said(stop_reason="max_tokens")
    with pytest.raises(AnswerCut) as raised:
        ask(Bedrock("stack"), QUESTION, Budget.of(60))
    cut = raised.value.said
    assert (cut.stop_reason, cut.input_tokens, cut.output_tokens) == ("max_tokens", 1200, 40)
    assert json.loads(capsys.readouterr().out)["ModelOutputTokens"] == [40]


def test_a_model_that_takes_too_long_is_given_up_in_time(model: Model) -> None:
    model.may_answer.clear()
    budget = Budget.of(60)
    with pytest.raises(Transient, match="ReadTimeoutError"):
        ask(Bedrock("stack"), replace(QUESTION, most_seconds=1), budget)
    assert budget.seconds_left > 40
    assert len(model.asked) == 1


def test_the_client_waits_no_longer_than_the_attempt_has_left(model: Model) -> None:
    waits: list[float] = []

    def client(seconds: float) -> Any:
        waits.append(seconds)
        return converse_client(seconds)

    for left in (60, 20):
        ask(Bedrock("stack", client), QUESTION, Budget.of(left))
    assert waits == [30, pytest.approx(17, abs=1)]


def test_nothing_is_asked_when_no_time_is_left(model: Model) -> None:
    with pytest.raises(Transient, match="no time left"):
        ask(Bedrock("stack"), QUESTION, Budget.of(2))
    assert model.asked == []
