"""Reach the stack that a command works on through AWS's APIs only: the laptop's endpoint, or AWS itself.

Nothing else in the command line knows which of the two it is.
"""

from __future__ import annotations

import base64
import json
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from signalbox_cli.errors import CommandFailed
from signalbox_cli.target.function_response import FunctionResponse

if TYPE_CHECKING:
    import boto3
    from botocore.config import Config
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudformation.type_defs import StackResourceSummaryTypeDef
    from mypy_boto3_lambda import LambdaClient

Invocation = Literal["RequestResponse", "Event"]


@dataclass(frozen=True, slots=True)
class Target:
    """Reach one stack. Without an endpoint it is on AWS."""

    stack: str
    endpoint: str | None = None

    def client(self, service: str, config: Config | None = None) -> Any:
        """Return a client of one service. The caller declares its type."""
        from signalbox_cli.target.session import CONFIG

        make: Any = _session(self.endpoint is not None).client
        # A proxy from the shell's environment would not reach this machine's loopback.
        own = {"endpoint_url": self.endpoint} if self.endpoint else {}
        return make(service, config=_without_proxies(config or CONFIG, self.endpoint), **own)

    def function_name(self, function: str) -> str:
        """Return a function's full name for its short one; an ARN stays as it is."""
        return function if function.startswith((f"{self.stack}-", "arn:")) else f"{self.stack}-{function}"

    def invoke(self, function: str, payload: Any, kind: Invocation = "RequestResponse") -> FunctionResponse:
        """Send a payload and return the response, which may be an error of the function."""
        from signalbox_cli.target.session import INVOKE_CONFIG

        lambda_: LambdaClient = self.client("lambda", INVOKE_CONFIG)
        answer = lambda_.invoke(
            FunctionName=self.function_name(function),
            Payload=json.dumps(payload).encode(),
            InvocationType=kind,
            LogType="Tail" if kind == "RequestResponse" else "None",
        )
        return FunctionResponse(
            function=function,
            content=answer["Payload"].read(),
            failed="FunctionError" in answer,
            log=base64.b64decode(answer.get("LogResult", "")).decode(errors="replace"),
            request_id=answer["ResponseMetadata"]["RequestId"],
        )

    def operate(self, operation: str, **params: Any) -> dict[str, Any]:
        """Run one of the api's operations; a param that is None is left out."""
        given = {name.rstrip("_"): _plain(value) for name, value in params.items() if value is not None}
        answer: dict[str, Any] = self.invoke("api", {"operation": operation, "params": given}).value()
        answer.pop("operation", None)
        return answer

    def functions(self) -> list[str]:
        """Return the full names of the stack's functions."""
        return sorted(resource["PhysicalResourceId"] for resource in self.resources("AWS::Lambda::Function"))

    def resources(self, kind: str) -> Iterator[StackResourceSummaryTypeDef]:
        """Return the resources of that kind that CloudFormation made, including those in the stacks of packs."""
        yield from (found for found in self._all_resources(self.stack) if found.get("ResourceType") == kind)

    def _all_resources(self, stack: str) -> Iterator[StackResourceSummaryTypeDef]:
        cloudformation: CloudFormationClient = self.client("cloudformation")
        for page in cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack):
            for found in page["StackResourceSummaries"]:
                yield found
                if found.get("ResourceType") == "AWS::CloudFormation::Stack":
                    yield from self._all_resources(found["PhysicalResourceId"])


def choose_target(args: Namespace) -> Target:
    """Return the stack on AWS that was named, else the one that runs on this laptop."""
    if args.stack is not None:
        return Target(args.stack)
    from signalbox_laptop.home import Home, home_folder

    home = Home(home_folder(args.home))
    if home.supervisor() is None:
        raise CommandFailed(
            f"no stack runs in {home.folder}; start one with `signalbox up`, or name one on AWS with --stack"
        )
    state = home.read_state()
    if state is None:
        raise CommandFailed(f"the stack in {home.folder} is still starting; try again in a few seconds")
    return Target(state.stack, state.endpoint)


@cache
def _session(laptop: bool) -> boto3.Session:
    if laptop:
        from signalbox_laptop.aws import session

        return session()
    from signalbox_cli.target.session import on_aws

    return on_aws()


def _without_proxies(config: Config, endpoint: str | None) -> Config:
    if endpoint is None:
        return config
    from botocore.config import Config as Settings

    return config.merge(Settings(proxies={}))


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
