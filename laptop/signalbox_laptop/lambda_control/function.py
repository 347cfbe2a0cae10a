"""Describe a function as deployed: one frozen value, read from Lambda's own answers.

Two values with the same revision run the same code in the same environment, so a process of one may serve the other.
Concurrency and retries may differ within a revision.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from signalbox_laptop.aws import ACCOUNT, REGION
from signalbox_laptop.lambda_api.errors import FunctionUnknown, ParameterInvalid

if TYPE_CHECKING:
    from mypy_boto3_lambda.type_defs import (
        FunctionConfigurationResponseTypeDef,
        FunctionEventInvokeConfigResponseTypeDef,
    )

LATEST = "$LATEST"
# Six hours, AWS's default.
_MAXIMUM_EVENT_AGE = 21_600
_NAME = re.compile(
    r"(?:(?:arn:[\w-]+:lambda:(?P<region>[\w-]+):)?(?:(?P<account>\d{12}):)?function:|(?P<bare_account>\d{12}):)?"
    r"(?P<name>[\w-]+)(?::(?P<qualifier>\$LATEST|[\w-]+))?"
)


def name_of(given: str) -> str:
    """Return a function's name from a name, a partial ARN or an ARN, as the Invoke API does. There are no versions."""
    found = _NAME.fullmatch(given)
    if found is None:
        raise ParameterInvalid(f"'{given}' is not a function's name or ARN")
    _refuse_elsewhere(found, given)
    if found["qualifier"] not in (None, LATEST):
        raise FunctionUnknown(f"Function not found: {given}; the laptop has no versions and aliases")
    return found["name"]


def _refuse_elsewhere(found: re.Match[str], given: str) -> None:
    named_account = found["account"] or found["bare_account"]
    if (found["region"] or REGION) != REGION or (named_account or ACCOUNT) != ACCOUNT:
        raise FunctionUnknown(f"Function not found: {given}; this laptop is account {ACCOUNT} in {REGION}")


@dataclass(frozen=True, slots=True)
class EventConfig:
    """Configure a function's asynchronous events: how often to try, how old they may get, where failures go."""

    retries: int = 2
    maximum_age: int = _MAXIMUM_EVENT_AGE
    on_failure: str | None = None

    @staticmethod
    def read(answer: FunctionEventInvokeConfigResponseTypeDef) -> EventConfig:
        destinations = answer.get("DestinationConfig", {})
        return EventConfig(
            retries=answer.get("MaximumRetryAttempts", 2),
            maximum_age=answer.get("MaximumEventAgeInSeconds", _MAXIMUM_EVENT_AGE),
            on_failure=destinations.get("OnFailure", {}).get("Destination"),
        )


@dataclass(frozen=True, slots=True)
class Logging:
    """Configure a function's log: its group, and the level of what the code itself logs."""

    group: str
    level: str | None

    @staticmethod
    def read(answer: FunctionConfigurationResponseTypeDef) -> Logging:
        name, given = answer["FunctionName"], answer.get("LoggingConfig", {})
        if given.get("LogFormat") != "JSON":
            raise ParameterInvalid(
                f"function '{name}' logs as text; the laptop needs LoggingConfig: {{LogFormat: JSON}}"
            )
        return Logging(given.get("LogGroup") or f"/aws/lambda/{name}", given.get("ApplicationLogLevel"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """Describe a function's code: what runs it, and the zips that hold it."""

    handler: str
    runtime: str
    sha256: str
    layers: tuple[str, ...]

    @staticmethod
    def read(answer: FunctionConfigurationResponseTypeDef) -> Package:
        if answer.get("PackageType", "Zip") != "Zip":
            raise ParameterInvalid(
                f"function '{answer['FunctionName']}' is a container image; the laptop runs zip packages only"
            )
        return Package(
            handler=answer["Handler"],
            runtime=answer["Runtime"],
            sha256=answer["CodeSha256"],
            layers=tuple(layer["Arn"] for layer in answer.get("Layers", [])),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """Describe what is needed to run a function."""

    name: str
    arn: str
    version: str
    package: Package
    timeout: int
    memory: int
    variables: Mapping[str, str]
    logging: Logging
    revision: str
    reserved_concurrency: int | None
    event_config: EventConfig

    @staticmethod
    def read(
        answer: FunctionConfigurationResponseTypeDef,
        reserved_concurrency: int | None,
        event_config: EventConfig,
    ) -> Function:
        return Function(
            name=answer["FunctionName"],
            arn=":".join(answer["FunctionArn"].split(":")[:7]),
            version=answer["Version"],
            package=Package.read(answer),
            timeout=int(answer["Timeout"]),
            memory=int(answer["MemorySize"]),
            variables={key: _text(value) for key, value in answer.get("Environment", {}).get("Variables", {}).items()},
            logging=Logging.read(answer),
            revision=_revision(answer),
            reserved_concurrency=None if reserved_concurrency is None else int(reserved_concurrency),
            event_config=event_config,
        )


def _text(value: object) -> str:
    """Turn numbers and booleans of a template into text, as CloudFormation does and moto does not."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _revision(answer: FunctionConfigurationResponseTypeDef) -> str:
    """Hash the whole configuration: moto does not change LastModified when a function is updated."""
    configuration = {key: value for key, value in answer.items() if key != "ResponseMetadata"}
    return hashlib.sha256(json.dumps(configuration, sort_keys=True, default=str).encode()).hexdigest()
