"""The Invoke API works as boto3 calls it."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from tests.support.lambda_stand import Stand

pytest_plugins = ["tests.support.lambda_stand"]

ACCOUNT = "123456789012"


def refused(call: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
    with pytest.raises(ClientError) as caught:
        call(*args, **kwargs)
    return dict(caught.value.response)


def test_a_function_answers_what_its_handler_returns(stand: Stand) -> None:
    name = stand.deploy("echo", Timeout=7)
    answer = stand.invoke(name, {"a": [1, "ü"]})
    said = json.load(answer["Payload"])
    assert (answer["StatusCode"], answer["ExecutedVersion"]) == (200, "$LATEST")
    assert "FunctionError" not in answer
    assert "LogResult" not in answer
    assert said["event"] == {"a": [1, "ü"]}
    assert said["request_id"] == answer["ResponseMetadata"]["RequestId"]
    assert said["arn"] == f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:{name}"
    assert 5_000 < said["remaining_ms"] <= 7_000


@pytest.mark.parametrize(
    "form",
    [
        "{name}",
        "{name}:$LATEST",
        "{account}:function:{name}",
        "function:{name}",
        "arn:aws:lambda:us-east-1:{account}:function:{name}",
        "arn:aws:lambda:us-east-1:{account}:function:{name}:$LATEST",
    ],
)
def test_a_function_is_found_by_each_form_of_its_name(stand: Stand, form: str) -> None:
    name = stand.deploy("echo")
    given = form.format(name=name, account=ACCOUNT)
    answer = json.loads(stand.service.invoke(given, b"{}").payload)
    assert answer["event"] == {}
    if not given.startswith("function:"):
        assert stand.call(given, 1)["event"] == 1


def test_versions_are_refused_for_there_are_none(stand: Stand) -> None:
    name = stand.deploy("echo")
    assert stand.call(name, {}, Qualifier="$LATEST")["version"] == "$LATEST"
    for qualifier in ("7", "live"):
        with pytest.raises(ClientError, match="has no versions and aliases"):
            stand.lambda_.invoke(FunctionName=name, Qualifier=qualifier)


@pytest.mark.parametrize(
    "stranger",
    ["nobody", f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:nobody", "arn:aws:lambda:eu-west-1:1{rest}:function:echo"],
)
@pytest.mark.parametrize("kind", ["RequestResponse", "Event"])
def test_an_unknown_function_is_not_found(stand: Stand, stranger: str, kind: Any) -> None:
    refusal = refused(stand.invoke, stranger.replace("{rest}", "1" * 11), {}, InvocationType=kind)
    assert refusal["ResponseMetadata"]["HTTPStatusCode"] == 404
    assert refusal["Error"]["Code"] == "ResourceNotFoundException"
    assert "Function not found" in refusal["Error"]["Message"]


def test_a_function_that_was_deleted_is_not_found(stand: Stand) -> None:
    name = stand.deploy("echo")
    stand.call(name)
    stand.undeploy()
    assert refused(stand.invoke, name)["Error"]["Code"] == "ResourceNotFoundException"


@pytest.mark.parametrize("kind", ["RequestResponse", "Event"])
def test_a_payload_that_is_no_json_is_refused(stand: Stand, kind: Any) -> None:
    name = stand.deploy("echo")
    refusal = refused(stand.lambda_.invoke, FunctionName=name, Payload=b"{oops", InvocationType=kind)
    assert refusal["ResponseMetadata"]["HTTPStatusCode"] == 400
    assert refusal["Error"]["Code"] == "InvalidRequestContentException"
    assert "Could not parse request body into json" in refusal["Error"]["Message"]


def test_no_payload_is_an_empty_object(stand: Stand) -> None:
    name = stand.deploy("echo")
    answer = stand.lambda_.invoke(FunctionName=name)
    assert json.load(answer["Payload"])["event"] == {}


def test_an_unknown_invocation_type_is_refused(stand: Stand) -> None:
    name = stand.deploy("echo")
    odd: Any = "Sometimes"
    assert refused(stand.invoke, name, {}, InvocationType=odd)["Error"]["Code"] == "InvalidParameterValueException"


def test_a_handler_that_raises_is_a_function_error(stand: Stand) -> None:
    name = stand.deploy("writer")
    answer = stand.invoke(name, {"raise": "no luck"})
    error = json.load(answer["Payload"])
    assert (answer["StatusCode"], answer["FunctionError"]) == (200, "Unhandled")
    assert (error["errorType"], error["errorMessage"]) == ("RuntimeError", "no luck")
    assert error["requestId"] == answer["ResponseMetadata"]["RequestId"]
    assert any("writer.py" in line for line in error["stackTrace"])


def test_the_log_tail_is_the_end_of_this_invocations_log(stand: Stand) -> None:
    name = stand.deploy("writer")
    stand.invoke(name, {"print": ["of the first"]})
    answer = stand.invoke(name, {"print": ["of the second"]}, LogType="Tail")
    tail = base64.b64decode(answer["LogResult"]).decode()
    [started, said, report] = tail.splitlines()
    assert json.loads(started)["record"]["requestId"] == answer["ResponseMetadata"]["RequestId"]
    assert said == "of the second"
    assert "initDurationMs" not in json.loads(report)["record"]["metrics"]


def test_the_log_tail_holds_four_kilobytes(stand: Stand) -> None:
    name = stand.deploy("writer")
    answer = stand.invoke(name, {"flood": 2_000}, LogType="Tail")
    tail = base64.b64decode(answer["LogResult"])
    assert len(tail) == 4096
    assert json.loads(tail.decode().splitlines()[-1])["type"] == "platform.report"
    assert "line 1999 of many" in tail.decode()


def test_a_synchronous_payload_holds_six_megabytes(stand: Stand) -> None:
    name = stand.deploy("writer", handler="writer.size", Timeout=10)
    limit = 6_291_456
    full = json.dumps("x" * (limit - 2)).encode()
    assert json.load(stand.lambda_.invoke(FunctionName=name, Payload=full)["Payload"]) == limit
    over = json.dumps("x" * (limit - 1)).encode()
    refusal = refused(stand.lambda_.invoke, FunctionName=name, Payload=over)
    assert refusal["ResponseMetadata"]["HTTPStatusCode"] == 413
    assert refusal["Error"]["Code"] == "RequestTooLargeException"


def test_an_asynchronous_payload_holds_one_megabyte(stand: Stand) -> None:
    name = stand.deploy("writer", handler="writer.size")
    full = json.dumps("x" * (1_048_576 - 2)).encode()
    over = json.dumps("x" * (1_048_576 - 1)).encode()
    kind: Any = "Event"
    assert stand.lambda_.invoke(FunctionName=name, Payload=full, InvocationType=kind)["StatusCode"] == 202
    refusal = refused(stand.lambda_.invoke, FunctionName=name, Payload=over, InvocationType=kind)
    assert refusal["Error"]["Code"] == "RequestTooLargeException"
    assert stand.service.idle(10)


def test_answer_over_six_megabytes_is_an_error_and_next_one_succeeds(stand: Stand) -> None:
    name = stand.deploy("writer", handler="writer.big", Timeout=10)
    error = stand.fail(name, {"bytes": 6_300_000})
    assert error["errorType"] == "Function.ResponseSizeTooLarge"
    assert "6291556 bytes" in error["errorMessage"]
    assert len(stand.call(name, {"bytes": 6_200_000})) == 6_200_000
