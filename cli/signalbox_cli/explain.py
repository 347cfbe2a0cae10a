"""Turn any error into one line that says what, which one, and what to do next, or into a value for programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from signalbox_cli.errors import UsageRefused
from signalbox_laptop.errors import LaptopError, ParameterRefused

_CREDENTIALS = "check `aws sts get-caller-identity`, or choose another AWS_PROFILE"
_NEXT_FOR_CODE = {
    "AccessDenied": "your AWS identity may not do that; ask for the permission, or choose another AWS_PROFILE",
    "ExpiredToken": "your AWS session has expired; sign in again, then repeat the command",
    "UnrecognizedClient": _CREDENTIALS,
    "InvalidClientTokenId": _CREDENTIALS,
    "SignatureDoesNotMatch": _CREDENTIALS,
    "InvalidSignature": _CREDENTIALS,
    "ResourceNotFound": "is the stack's name right, and the region? `signalbox doctor` checks",
    "ValidationError": "is the stack's name right, and the region? `aws cloudformation list-stacks` lists them",
    "TooManyRequests": "the function runs as often as it may at once; try again in a while",
    "Throttling": "AWS slows us down; try again in a while",
}
# These errors of the engine mean an unknown name, or a text that is no id.
_MISTYPED = frozenset({"TaskUnknown", "JobTypeUnknown", "IdRefused"})
_Fields = Mapping[str, Any]
# Keyed by botocore's class names: importing botocore only to look an error up is slow.
_NEXT_FOR_KIND: dict[str, Callable[[_Fields], str]] = {
    "NoCredentialsError": lambda _: f"no AWS credentials were found; {_CREDENTIALS}",
    "PartialCredentialsError": lambda _: f"the AWS credentials are incomplete; {_CREDENTIALS}",
    "NoRegionError": lambda _: "no AWS region is set; set AWS_REGION, or a region in the profile",
    "ProfileNotFound": lambda given: (
        f"AWS profile '{given.get('profile')}' does not exist; `aws configure list-profiles` lists them"
    ),
    "EndpointConnectionError": lambda given: (
        f"nothing answers at {_host(given)}; is the stack up (`signalbox status`), or the network down?"
    ),
    "ConnectTimeoutError": lambda given: f"nothing answers at {_host(given)}; is the network down?",
    "ConnectionClosedError": lambda given: (
        f"{_host(given)} broke the connection off; was the stack stopped? `signalbox status` says"
    ),
    "ReadTimeoutError": lambda given: (
        f"{_host(given)} took too long to answer; it may still be at work: `signalbox history` shows"
    ),
    "UnauthorizedSSOTokenError": lambda _: "your AWS session has expired; `aws sso login`, then repeat the command",
    "SSOTokenLoadError": lambda _: "you are not signed in to AWS; `aws sso login`, then repeat the command",
    "TokenRetrievalError": lambda _: "your AWS session has expired; `aws sso login`, then repeat the command",
}


def explain(error: BaseException) -> str:
    """Return the line for a person."""
    if isinstance(error, LaptopError):
        return str(error)
    if (response := getattr(error, "response", None)) and "Error" in response:
        return _refusal(response["Error"], getattr(error, "operation_name", "the call"))
    fields = getattr(error, "kwargs", {})
    if known := _NEXT_FOR_KIND.get(type(error).__name__):
        return known(fields)
    if type(error).__module__.startswith(("botocore", "boto3")):
        return f"AWS can't be asked: {_in_one_line(error)}"
    return f"unexpected {type(error).__name__}: {_in_one_line(error)}; --debug shows where"


def is_mistyped(error: BaseException) -> bool:
    """Say whether the typed words were wrong."""
    return isinstance(error, UsageRefused | ParameterRefused) or getattr(error, "kind", None) in _MISTYPED


def as_value(error: BaseException) -> dict[str, str]:
    """Return the error for a program, which tells errors apart by their type."""
    kind = _kind(error)
    return {"type": kind, "message": explain(error).removeprefix(f"{kind}: ")}


def _kind(error: BaseException) -> str:
    """Return the error's name, as the function or AWS gave it."""
    response = getattr(error, "response", None) or {}
    return str(getattr(error, "kind", None) or response.get("Error", {}).get("Code") or type(error).__name__)


def _in_one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _host(fields: _Fields) -> str:
    url = urlsplit(str(fields.get("endpoint_url", "")))
    return f"{url.scheme}://{url.netloc}"


def _refusal(error: Mapping[str, str], operation: str) -> str:
    code, message = error.get("Code", "?"), error.get("Message", "").strip().rstrip(".")
    plain = code.removesuffix("Exception").removesuffix("Error") if code != "ValidationError" else code
    what = f"{operation} was refused: {message or code}"
    return f"{what}; {_NEXT_FOR_CODE[plain]}" if plain in _NEXT_FOR_CODE else f"{what} ({code})"
