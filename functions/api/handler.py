"""Answer one operation, such as submit_jobs: for the command line, for programs, and for requests of the HTTP API."""

import os
from datetime import UTC, datetime
from functools import cache
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

import signalbox.api.serve  # noqa: F401 - while it starts, Lambda gives a function a whole processor
from signalbox.app import App
from signalbox.invocation import Invocation


@cache
def app() -> App:
    return App.start(os.environ)


def handler(event: object, context: LambdaContext) -> dict[str, Any]:
    seconds_left = context.get_remaining_time_in_millis() / 1000
    return app().operate(event, Invocation.of(context.aws_request_id, datetime.now(UTC), seconds_left))
