"""Read messages of the dead-letter queues without trusting them.

A message is a lane's, an event that a rule could not deliver, or an invocation that failed each time. Anything else is
kept as text, for people to look at.
"""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from signalbox.jobs.job_message import read_job_id
from signalbox.jobs.verdict import fingerprint

LONGEST_BODY = 20_000  # characters that are kept of an unreadable message
LONGEST_MESSAGE = 2000
LONGEST_NAME = 200
# The same message makes the same dead letter, however often it comes.
_NAMESPACE = uuid.UUID("6f6f4f0e-6b1c-5d0e-9a52-3a0d8f6f3c11")


@dataclass(frozen=True, slots=True)
class FailedMessage:
    """Describe a message or an invocation as the dead letter that it becomes."""

    id: str
    source: Literal["message", "invocation"]
    job_type: str  # or the task, or the function
    payload: Any
    failure_reason: Literal["unreadable", "undelivered"]
    error_type: str
    error_message: str
    error_stack: str | None
    total_attempts: int
    metadata: dict[str, Any]

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.job_type, {"type": self.error_type, "message": self.error_message})


def job_of(record: Mapping[str, Any]) -> str | None:
    """Return the id of the job that a lane's message names."""
    return read_job_id(_body(record))


def read_letter(record: Mapping[str, Any], stack: str) -> FailedMessage:
    """Return the dead letter of a message that names no job, or a job that does not exist."""
    body = _json(_body(record))
    attributes = _attributes(record)
    if "RULE_ARN" in attributes:
        return _of_rule(record, attributes, body, stack)
    if isinstance(body, dict) and isinstance(body.get("requestContext"), dict) and "requestPayload" in body:
        return _of_invocation(record, body)
    return _of_message(record, body)


def _of_rule(record: Mapping[str, Any], attributes: Mapping[str, str], body: Any, stack: str) -> FailedMessage:
    """Read what a rule could not deliver: its event. What the target would have received is known only for a task."""
    event = body if isinstance(body, dict) else {}
    rule = attributes["RULE_ARN"].rpartition("/")[2]
    task = _name(event.get("task")) or rule.removeprefix(f"{stack}.")[:LONGEST_NAME]
    asked = None if "task" in event else {"task": task, "scheduled_time": event.get("time")}
    return FailedMessage(
        id=_id(record),
        source="invocation",
        job_type=task or "unknown",
        payload=event or _cut(_body(record), LONGEST_BODY),
        failure_reason="undelivered",
        error_type=_cut(attributes.get("ERROR_CODE") or "Undelivered", LONGEST_NAME),
        error_message=_cut(attributes.get("ERROR_MESSAGE") or "the rule's event was not delivered", LONGEST_MESSAGE),
        error_stack=None,
        total_attempts=_number(attributes.get("RETRY_ATTEMPTS")) + 1,
        metadata=_origin(record)
        | {"rule": rule, "function": _function(attributes.get("TARGET_ARN")), "input": asked}
        | {"exhausted": attributes.get("EXHAUSTED_RETRY_CONDITION")},
    )


def _of_invocation(record: Mapping[str, Any], body: Mapping[str, Any]) -> FailedMessage:
    """Read Lambda's record of an asynchronous invocation: its payload, and its answer if it was ever begun."""
    context, asked, answer = body["requestContext"], body["requestPayload"], body.get("responsePayload")
    error: Mapping[str, Any] = answer if isinstance(answer, dict) else {}
    function = _function(context.get("functionArn"))
    task = _name(asked.get("task")) if isinstance(asked, dict) else None
    condition = _name(context.get("condition")) or "Failed"
    stack = error.get("stackTrace")
    return FailedMessage(
        id=_id(record),
        source="invocation",
        job_type=task or function or "unknown",
        payload=asked,
        failure_reason="undelivered",
        error_type=_name(error.get("errorType")) or condition,
        error_message=_cut(error.get("errorMessage") or f"the invocation ended with {condition}", LONGEST_MESSAGE),
        error_stack=_cut("".join(map(str, stack)), LONGEST_BODY) if isinstance(stack, list) and stack else None,
        total_attempts=_number(context.get("approximateInvokeCount")),
        metadata=_origin(record)
        | {"function": function, "request_id": _name(context.get("requestId")), "condition": condition},
    )


def _of_message(record: Mapping[str, Any], body: Any) -> FailedMessage:
    text, job_id = _body(record), job_of(record)
    job_type = _name(body.get("job_type")) if isinstance(body, dict) else None
    return FailedMessage(
        id=_id(record),
        source="message",
        job_type=job_type or "unknown",
        payload=_cut(text, LONGEST_BODY),
        failure_reason="unreadable",
        error_type="JobUnknown" if job_id else "MessageUnreadable",
        error_message="the job that the message names does not exist" if job_id else "the message can't be decoded",
        error_stack=None,
        total_attempts=_number(record.get("attributes", {}).get("ApproximateReceiveCount")),
        metadata=_origin(record) | {"job_id": job_id, "characters": len(text)},
    )


def _origin(record: Mapping[str, Any]) -> dict[str, Any]:
    attributes = record.get("attributes", {})
    return {
        "queue": str(record.get("eventSourceARN", "")).rpartition(":")[2],
        "message_id": record["messageId"],
        "receive_count": _number(attributes.get("ApproximateReceiveCount")),
        "group": attributes.get("MessageGroupId"),
    }


def _id(record: Mapping[str, Any]) -> str:
    return str(uuid.uuid5(_NAMESPACE, str(record["messageId"])))


def _attributes(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the attributes that hold text, as text that the database accepts."""
    given = record.get("messageAttributes") or {}
    texts = {name: held.get("stringValue") for name, held in given.items() if isinstance(held, dict)}
    return {name: _legible(value) for name, value in texts.items() if isinstance(value, str)}


def _body(record: Mapping[str, Any]) -> str:
    body = record.get("body")
    return body if isinstance(body, str) else ""


def _function(arn: object) -> str | None:
    """Return the function's name, without the version that Lambda adds."""
    parts = _legible(arn).split(":") if isinstance(arn, str) else []
    return parts[6] if len(parts) >= 7 and parts[2] == "lambda" else None


def _name(value: object) -> str | None:
    return _cut(value, LONGEST_NAME) if isinstance(value, str) and value else None


def _number(value: object) -> int:
    text = str(value)
    return min(int(text), 2**31 - 2) if text.isascii() and text.isdigit() and len(text) < 20 else 0


def _json(text: str) -> Any:
    """Return the parsed text, made fit for the database; None where it is no JSON, or nested too deep."""
    try:
        return _fit(json.loads(text))
    except (ValueError, RecursionError):
        return None


def _fit(value: Any) -> Any:
    if isinstance(value, str):
        return _legible(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {_legible(name): _fit(part) for name, part in value.items()}
    return [_fit(part) for part in value] if isinstance(value, list) else value


def _cut(value: object, most: int) -> str:
    return _legible(str(value)[:most])


def _legible(text: str) -> str:
    """Return the text as PostgreSQL can hold it: no NUL, no half of a surrogate pair."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")
