"""What is deployed, as the service knows it: functions and aliases by name, read when first asked for and when stale.

Reading costs several calls, so an answer is trusted for a moment; `forget` drops all of them, and the front calls it
whenever something was deployed through it. An alias is looked up for each call anew: it may split them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from botocore.exceptions import ClientError

from local.lambda_service.alias import Alias, Dealer
from local.lambda_service.faults import FunctionUnknown
from local.lambda_service.function import LATEST, EventConfig, Function, FunctionName

if TYPE_CHECKING:
    from local.lambda_service.clients import Clients
    from local.lambda_service.settings import ServiceSettings

_Read = TypeVar("_Read")


class Catalogue:
    """The deployed functions."""

    def __init__(self, clients: Clients, settings: ServiceSettings) -> None:
        self._lambda = clients.lambda_
        self._settings = settings
        self._lock = threading.Lock()
        self._known: dict[FunctionName, tuple[float, Function]] = {}
        self._aliases: dict[FunctionName, tuple[float, tuple[Alias, EventConfig]]] = {}
        self._dealers: dict[FunctionName, Dealer] = {}
        self._generation = 0

    def function(self, given: str, qualifier: str | None = None) -> Function:
        """The function that a name, partial ARN or ARN means; of an alias, the version that it points at."""
        return self._chosen(given, qualifier, lambda _, alias: alias.version)

    def next(self, given: str, qualifier: str | None = None) -> Function:
        """The same to be invoked now, in the version whose turn it is."""
        return self._chosen(given, qualifier, self._deal)

    def _chosen(self, given: str, qualifier: str | None, choose: Callable[[FunctionName, Alias], str]) -> Function:
        name = FunctionName.parse(given, qualifier, region=self._settings.region, account=self._settings.account)
        if not name.is_alias:
            return replace(self._function(name), qualifier=name.qualifier)
        alias, config = self._remembered(self._aliases, name, self._read_alias)
        function = self._function(FunctionName(name.name, choose(name, alias)))
        return replace(function, qualifier=name.qualifier, event_config=config)

    def _deal(self, name: FunctionName, alias: Alias) -> str:
        with self._lock:
            dealer = self._dealers.setdefault(name, Dealer())
        return dealer.version(alias)

    def forget(self) -> None:
        with self._lock:
            self._generation += 1
            self._known.clear()
            self._aliases.clear()

    def _function(self, name: FunctionName) -> Function:
        return self._remembered(self._known, name, self._read)

    def _remembered(
        self, known: dict[FunctionName, tuple[float, _Read]], name: FunctionName, read: Callable[[FunctionName], _Read]
    ) -> _Read:
        with self._lock:
            found = known.get(name)
            generation = self._generation
        if found is not None and time.monotonic() - found[0] < self._settings.refresh_seconds:
            return found[1]
        answer = read(name)
        with self._lock:
            # What was read before a change must not be remembered after it.
            if generation == self._generation:
                known[name] = (time.monotonic(), answer)
        return answer

    def _read_alias(self, name: FunctionName) -> tuple[Alias, EventConfig]:
        try:
            answer = self._lambda.get_alias(FunctionName=name.name, Name=str(name.qualifier))
        except ClientError as error:
            raise self._fault(name, error) from error
        return Alias.read(answer), self._event_config(name)

    def _read(self, name: FunctionName) -> Function:
        try:
            configuration = self._lambda.get_function_configuration(
                FunctionName=name.name, Qualifier=name.qualifier or LATEST
            )
            reserved = self._lambda.get_function_concurrency(FunctionName=name.name).get("ReservedConcurrentExecutions")
        except ClientError as error:
            raise self._fault(name, error) from error
        return Function.read(configuration, reserved, self._event_config(name))

    def _event_config(self, name: FunctionName) -> EventConfig:
        try:
            answer = self._lambda.get_function_event_invoke_config(
                FunctionName=name.name, **({"Qualifier": name.qualifier} if name.qualifier else {})
            )
        except ClientError as error:
            if _is_missing(error):
                return EventConfig()
            raise
        return EventConfig.read(answer)

    def _fault(self, name: FunctionName, error: ClientError) -> Exception:
        if not _is_missing(error):
            return error
        arn = f"arn:aws:lambda:{self._settings.region}:{self._settings.account}:function:{name.name}"
        qualified = f"{arn}:{name.qualifier}" if name.qualifier else arn
        return FunctionUnknown(f"Function not found: {qualified}")


def _is_missing(error: ClientError) -> bool:
    return error.response["Error"]["Code"] == "ResourceNotFoundException"
