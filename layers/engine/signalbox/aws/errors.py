"""The meaning of a failed call of AWS, by the error's code and status, never by its words.

botocore is not imported here: where it is not loaded, no error is its own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from signalbox.errors import SignalboxError, Unavailable
from signalbox.packs.outcome import JobFailed, Permanent, RateLimited, Transient

_DENIED = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AuthorizationError",
        "AuthorizationErrorException",
        "KMSAccessDenied",
        "KMSAccessDeniedException",
        "NotAuthorized",
        "UnauthorizedOperation",
    }
)
_THROTTLED = frozenset(
    {
        "KMSThrottling",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "Throttled",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
_REFUSED = frozenset(
    {
        "BadDocumentException",
        "BadRequestException",
        "DocumentTooLargeException",
        "EndpointDisabled",
        "IdempotentParameterMismatchException",
        "InvalidJobIdException",
        "InvalidKMSKeyException",
        "InvalidParameter",
        "InvalidParameterException",
        "InvalidParameterValue",
        "InvalidRequestException",
        "InvalidS3ObjectException",
        "MailFromDomainNotVerifiedException",
        "MessageRejected",
        "NotFound",
        "NotFoundException",
        "ParameterValueInvalid",
        "PlatformApplicationDisabled",
        "ResourceNotFoundException",
        "UnsupportedDocumentException",
        "ValidationError",
        "ValidationException",
    }
)


# Temporary refusals by S3: credentials that are being renewed, or a clock that is being set.
_PASSING = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestTimeTooSkewed", "RequestExpired"})

_CHANGED = ": the object has changed since the job started; submit the job again"
_S3_ADVICE = {
    # Nobody changes a policy within the minutes of the retries; a redrive after that continues.
    403: ": grant it to the worker's role, then redrive the dead letter",
    404: ": no such object or bucket",
    412: _CHANGED,
    416: _CHANGED,
}


def is_aws_error(error: BaseException) -> bool:
    """Say whether an error is botocore's: a refusal by AWS, or no answer."""
    botocore = sys.modules.get("botocore.exceptions")
    return botocore is not None and isinstance(error, (botocore.BotoCoreError, botocore.ClientError))


def code_of(error: BaseException) -> str | None:
    """Return AWS's code for its refusal, or None where it gave no answer."""
    response = getattr(error, "response", None)
    code: str | None = response.get("Error", {}).get("Code") if isinstance(response, dict) else None
    return code


def is_denied(error: BaseException) -> bool:
    """Say whether an error is a missing permission."""
    return code_of(error) in _DENIED


@contextmanager
def unavailable(what: str, kind: type[SignalboxError] = Unavailable) -> Iterator[None]:
    """Raise an error of our own in place of botocore's: `what`, and its words."""
    try:
        yield
    except Exception as error:
        if not is_aws_error(error):
            raise
        raise kind(f"{what}: {error}") from None


def classify(error: Exception, what: str) -> JobFailed:
    """Return what a job raises for an error of botocore's, without its words: they repeat addresses and payloads."""
    code = code_of(error)
    if type(error).__name__ == "ParamValidationError":
        return Permanent(f"{what}: AWS does not accept its format")
    if code is None:
        return Transient(f"{what}: AWS gave no answer, {type(error).__name__}")
    if code in _THROTTLED:
        return RateLimited(f"{what}: AWS throttles it, {code}")
    if code in _DENIED:
        return Permanent(
            f"{what}: AWS denies it, {code}: grant it to the function's role, then redrive the dead letter"
        )
    if code in _REFUSED:
        return Permanent(f"{what}: AWS refuses it, {code}")
    return Transient(f"{what}: AWS fails, {code}")


@contextmanager
def call_errors(what: str) -> Iterator[None]:
    """Raise what a job raises in place of an error of a client of AWS."""
    try:
        yield
    except Exception as error:
        if not is_aws_error(error):
            raise
        raise classify(error, what) from None


@contextmanager
def s3_errors(what: str) -> Iterator[None]:
    """Raise what a job raises in place of an error of S3's client."""
    try:
        yield
    except Exception as error:
        if not is_aws_error(error):
            raise
        raise _classify_s3(error, what) from None


def _classify_s3(error: Exception, what: str) -> JobFailed:
    if type(error).__name__ == "ParamValidationError":
        return Permanent(f"{what}: S3 does not accept the name: {' '.join(str(error).split())}")
    if (code := code_of(error)) is None:
        return Transient(f"{what}: S3 does not answer: {type(error).__name__}")
    answer: dict[str, Any] = getattr(error, "response", {})
    status = answer["ResponseMetadata"]["HTTPStatusCode"]
    words = f"{what}: S3 answers {status}" + (f" {code}" if code != str(status) else "")  # a HEAD's code is its status
    if code == "SlowDown" or status == 429:
        return RateLimited(words)
    if status >= 500 or status == 408 or code in _PASSING:
        return Transient(words)
    return Permanent(words + _S3_ADVICE.get(status, ""))
