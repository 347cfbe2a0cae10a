"""Ask a model of Bedrock one question, and have it answer by the input of one tool: an object of the tool's schema.

One call is made, and none is made again: a model is dear, and a retry is the job's. Texts never reach the log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from signalbox.aws.clients import CONNECT_SECONDS, converse_client
from signalbox.aws.errors import call_errors
from signalbox.budget import Budget
from signalbox.packs.outcome import Permanent, Transient
from signalbox.runtime.metrics import write_line

if TYPE_CHECKING:
    from mypy_boto3_bedrock_runtime import BedrockRuntimeClient
    from mypy_boto3_bedrock_runtime.type_defs import (
        ConverseRequestTypeDef,
        ConverseResponseTypeDef,
        InferenceConfigurationTypeDef,
        ToolSpecificationTypeDef,
    )

_SHORTEST = 1.0  # seconds: no model answers sooner
_CUT = ("max_tokens", "model_context_window_exceeded")
_WITHHELD = ("content_filtered", "guardrail_intervened")
_MALFORMED = ("malformed_model_output", "malformed_tool_use")


@dataclass(frozen=True, slots=True)
class Prices:
    """Hold what a million tokens cost, in USD."""

    input_usd: float
    output_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Hold what a model is asked, and what it may take."""

    model_id: str
    system: str
    text: str
    tool_name: str
    tool_description: str
    schema: Mapping[str, Any]  # JSON schema of the tool's input
    max_tokens: int
    most_seconds: float  # to wait for the answer
    temperature: float | None = None  # None: the model's own
    prices: Prices | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """Hold the tool's input as the model gave it: nothing of the schema has been checked."""

    output: Any  # an object, where it is not from an error
    input_tokens: int
    output_tokens: int
    stop_reason: str


class AnswerCut(Permanent):
    """The answer has no room: ask about less text, or allow more tokens."""

    def __init__(self, said: Answer) -> None:
        super().__init__(f"the model's answer was cut, {said.stop_reason}: ask about less text")
        self.said = said  # what it cost, and why it was cut


class AnswerWithheld(Permanent):
    """The model or a guardrail refuses to answer."""

    def __init__(self, said: Answer) -> None:
        super().__init__(f"the model's answer was withheld, {said.stop_reason}")
        self.said = said


class AnswerMissing(Transient):
    """The model has answered, but not by the tool."""

    def __init__(self, said: Answer, tool_name: str) -> None:
        super().__init__(f"the model did not answer by {tool_name}, {said.stop_reason}")
        self.said = said


@dataclass(frozen=True, slots=True)
class Bedrock:
    """Say whose tokens are counted, and how a client with a read time-out in seconds is made."""

    stack: str
    client: Callable[[float], BedrockRuntimeClient] = converse_client


def ask(bedrock: Bedrock, question: Question, budget: Budget) -> Answer:
    """Return the model's answer, within the time that the attempt has left."""
    seconds = min(question.most_seconds, budget.seconds_left - CONNECT_SECONDS)
    if seconds < _SHORTEST:
        raise Transient("the model was not asked: the attempt has no time left for it")
    with closing(bedrock.client(seconds)) as client, call_errors("Bedrock"):
        said = client.converse(**_request(question))
    input_tokens, output_tokens = said["usage"]["inputTokens"], said["usage"]["outputTokens"]
    _count(bedrock.stack, question, input_tokens, output_tokens)
    answer = Answer(_output(said, question.tool_name), input_tokens, output_tokens, said["stopReason"])
    if answer.stop_reason in _CUT:
        raise AnswerCut(answer)
    if answer.stop_reason in _WITHHELD:
        raise AnswerWithheld(answer)
    if not isinstance(answer.output, dict) or answer.stop_reason in _MALFORMED:
        raise AnswerMissing(answer, question.tool_name)
    return answer


def _request(question: Question) -> ConverseRequestTypeDef:
    inference: InferenceConfigurationTypeDef = {"maxTokens": question.max_tokens}
    if question.temperature is not None:
        inference["temperature"] = question.temperature
    tool: ToolSpecificationTypeDef = {
        "name": question.tool_name,
        "description": question.tool_description,
        "inputSchema": {"json": question.schema},
    }
    return {
        "modelId": question.model_id,
        "system": [{"text": question.system}],
        "messages": [{"role": "user", "content": [{"text": question.text}]}],
        "inferenceConfig": inference,
        "toolConfig": {"tools": [{"toolSpec": tool}], "toolChoice": {"tool": {"name": question.tool_name}}},
    }


def _count(stack: str, question: Question, input_tokens: int, output_tokens: int) -> None:
    """Count also what an answer cost that is of no use."""
    counts = {"ModelInputTokens": input_tokens, "ModelOutputTokens": output_tokens}
    if question.prices is not None:  # a dollar for a million tokens is a millionth of one for each
        cost = input_tokens * question.prices.input_usd + output_tokens * question.prices.output_usd
        counts["ModelCostMicroUsd"] = round(cost)
    write_line(stack, "model.asked", counts, model_id=question.model_id)


def _output(said: ConverseResponseTypeDef, tool_name: str) -> Any:
    """Return what the model gave to the tool, or None."""
    blocks = said["output"].get("message", {}).get("content", [])
    used = [block["toolUse"] for block in blocks if "toolUse" in block]
    return next((use["input"] for use in used if use["name"] == tool_name), None)
