"""Every foreseeable AWS error becomes a line that says what to do next."""

from __future__ import annotations

import pytest
from botocore import exceptions

from signalbox_cli.errors import CommandFailed, FunctionFailed
from signalbox_cli.explain import as_value, explain
from signalbox_cli.target.function_response import FunctionResponse


def refusal(code: str, message: str = "No.") -> exceptions.ClientError:
    return exceptions.ClientError({"Error": {"Code": code, "Message": message}}, "Invoke")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (exceptions.NoCredentialsError(), "no AWS credentials were found; check `aws sts get-caller-identity`"),
        (exceptions.NoRegionError(), "set AWS_REGION"),
        (exceptions.ProfileNotFound(profile="work"), "AWS profile 'work' does not exist"),
        (
            exceptions.EndpointConnectionError(endpoint_url="http://127.0.0.1:9/a/b"),
            "nothing answers at http://127.0.0.1:9;",
        ),
        (exceptions.ReadTimeoutError(endpoint_url="https://l.aws/2015/x"), "https://l.aws took too long"),
        (exceptions.ConnectionClosedError(endpoint_url="http://127.0.0.1:9/x"), "broke the connection off"),
        (exceptions.UnauthorizedSSOTokenError(), "`aws sso login`"),
        (refusal("AccessDeniedException"), "your AWS identity may not do that"),
        (refusal("AccessDenied"), "your AWS identity may not do that"),
        (refusal("ExpiredTokenException"), "sign in again"),
        (
            refusal("ResourceNotFoundException", "Function not found: x"),
            "Function not found: x; is the stack's name right",
        ),
        (refusal("TooManyRequestsException"), "try again in a while"),
        (refusal("ValidationError", "Stack with id x does not exist"), "does not exist; is the stack's name right"),
        (refusal("Oddity", "Something new."), "Invoke was refused: Something new (Oddity)"),
        (exceptions.ParamValidationError(report="bad"), "AWS can't be asked: "),
        (CommandFailed("as it is"), "as it is"),
        (ZeroDivisionError("by nought"), "unexpected ZeroDivisionError: by nought; --debug shows where"),
    ],
)
def test_an_error_is_explained(error: Exception, words: str) -> None:
    assert words in explain(error)
    assert "\n" not in explain(error)


def answered(content: str, *, failed: bool = True) -> FunctionResponse:
    return FunctionResponse(function="archiver", content=content.encode(), failed=failed, log="", request_id="1")


def test_an_answer_is_a_value() -> None:
    assert answered('{"status": "succeeded"}', failed=False).value() == {"status": "succeeded"}


def test_error_of_the_engine_is_shown_unchanged() -> None:
    with pytest.raises(FunctionFailed, match=r"^PayloadRefused: payload refused: field 'task' is missing$"):
        answered(
            '{"errorType": "PayloadRefused", "errorMessage": "payload refused: field \'task\' is missing"}'
        ).value()


@pytest.mark.parametrize(
    "content",
    [
        '{"errorType": "KeyError", "errorMessage": "\'x\'", "stackTrace": []}',
        '{"errorType": "Runtime.ExitError", "errorMessage": "exit status 1"}',
        '{"errorMessage": "2026 Task timed out after 3.00 seconds"}',
    ],
)
def test_of_any_other_error_the_log_knows_more(content: str) -> None:
    with pytest.raises(FunctionFailed, match=r"`signalbox logs archiver --since 10m` shows"):
        answered(content).value()


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (
            FunctionFailed("TaskUnknown: task 'x' is not registered", "TaskUnknown"),
            "TaskUnknown",
            "task 'x' is not regis",
        ),
        (
            refusal("AccessDeniedException", "Not you."),
            "AccessDeniedException",
            "Invoke was refused: Not you; your AWS",
        ),
        (exceptions.NoRegionError(), "NoRegionError", "no AWS region is set"),
        (CommandFailed("as it is"), "CommandFailed", "as it is"),
    ],
)
def test_error_is_a_value_with_its_own_type(error: Exception, kind: str, message: str) -> None:
    value = as_value(error)
    assert value["type"] == kind
    assert value["message"].startswith(message)
