"""What a failed call of AWS means for the job that made it, told by the error's code, never by its words."""

from __future__ import annotations

from typing import Any

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
        "BadRequestException",
        "EndpointDisabled",
        "InvalidParameter",
        "InvalidParameterException",
        "InvalidParameterValue",
        "InvalidRequestException",
        "MailFromDomainNotVerifiedException",
        "MessageRejected",
        "NotFound",
        "NotFoundException",
        "ParameterValueInvalid",
        "PlatformApplicationDisabled",
        "ResourceNotFoundException",
        "ValidationError",
        "ValidationException",
    }
)


def is_denied(error: BaseException) -> bool:
    """Say whether an error of botocore's is a missing permission, without importing botocore."""
    response = getattr(error, "response", None)
    return isinstance(response, dict) and response.get("Error", {}).get("Code") in _DENIED


def classify(error: Exception, what: str) -> JobFailed:
    """What to raise for an error of botocore's. Its own words stay out: they repeat addresses and what was sent."""
    from botocore.exceptions import ParamValidationError

    if isinstance(error, ParamValidationError):
        return Permanent(f"{what}: it is not of the shape that AWS takes")
    response: dict[str, Any] = getattr(error, "response", {})
    code = response.get("Error", {}).get("Code")
    if code is None:  # no answer came: botocore's own class says why
        return Transient(f"{what}: AWS gave no answer, {type(error).__name__}")
    if code in _THROTTLED:
        return RateLimited(f"{what}: AWS asks for patience, {code}")
    if code in _DENIED:
        return Permanent(f"{what}: AWS denies it, {code}: let the function's role do it, then redrive the dead letter")
    if code in _REFUSED:
        return Permanent(f"{what}: AWS refuses it, {code}")
    return Transient(f"{what}: AWS fails, {code}")
