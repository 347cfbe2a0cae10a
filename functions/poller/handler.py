"""Look for new upstream data. A rule invokes the poller each quarter of an hour, and people by hand."""

import os
from datetime import UTC, datetime
from functools import cache
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

import signalbox.ledger.run  # noqa: F401 - while it starts, Lambda gives a function a whole processor
from signalbox.app import App
from signalbox.invocation import Invocation


@cache
def app() -> App:
    return App.start(os.environ)


def handler(event: object, context: LambdaContext) -> dict[str, Any]:
    seconds_left = context.get_remaining_time_in_millis() / 1000
    return app().poll(event, Invocation.of(context.aws_request_id, datetime.now(UTC), seconds_left))
