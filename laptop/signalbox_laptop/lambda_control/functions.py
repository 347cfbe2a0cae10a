"""Look up deployed functions by name; read them when first asked for and when stale.

Reading costs several calls, so an answer is trusted for a moment. `forget` drops all answers; the front calls it after
each deploy that passes through it.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from signalbox_laptop.aws import ACCOUNT, REGION
from signalbox_laptop.lambda_api.errors import FunctionUnknown
from signalbox_laptop.lambda_control.function import EventConfig, Function, name_of

if TYPE_CHECKING:
    from signalbox_laptop.lambda_control.clients import LambdaClients
    from signalbox_laptop.lambda_control.settings import ServiceSettings


class Functions:
    """Look up the deployed functions."""

    def __init__(self, clients: LambdaClients, settings: ServiceSettings) -> None:
        self._lambda = clients.lambda_
        self._settings = settings
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, Function]] = {}
        self._generation = 0

    def function(self, given: str) -> Function:
        """Return the function that a name, partial ARN or ARN means."""
        name = name_of(given)
        with self._lock:
            found = self._known.get(name)
            generation = self._generation
        if found is not None and time.monotonic() - found[0] < self._settings.refresh_seconds:
            return found[1]
        function = self._read(name)
        with self._lock:
            # Do not remember after a change what was read before it.
            if generation == self._generation:
                self._known[name] = (time.monotonic(), function)
        return function

    def forget(self) -> None:
        with self._lock:
            self._generation += 1
            self._known.clear()

    def _read(self, name: str) -> Function:
        try:
            configuration = self._lambda.get_function_configuration(FunctionName=name)
            reserved = self._lambda.get_function_concurrency(FunctionName=name).get("ReservedConcurrentExecutions")
        except ClientError as error:
            if not _is_missing(error):
                raise
            arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"
            raise FunctionUnknown(f"Function not found: {arn}") from error
        return Function.read(configuration, reserved, self._event_config(name))

    def _event_config(self, name: str) -> EventConfig:
        try:
            return EventConfig.read(self._lambda.get_function_event_invoke_config(FunctionName=name))
        except ClientError as error:
            if _is_missing(error):
                return EventConfig()
            raise


def _is_missing(error: ClientError) -> bool:
    return error.response["Error"]["Code"] == "ResourceNotFoundException"
