"""Work on the jobs that a batch of messages names, and return which messages are to come back."""

import os
from datetime import UTC, datetime
from functools import cache
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

import signalbox.worker.worker  # noqa: F401 - while it starts, Lambda gives a function a whole processor
from signalbox.app import App
from signalbox.invocation import Invocation


@cache
def app() -> App:
    return App.start(os.environ)


def handler(event: object, context: LambdaContext) -> dict[str, Any]:
    seconds_left = context.get_remaining_time_in_millis() / 1000
    return app().work(event, Invocation.of(context.aws_request_id, datetime.now(UTC), seconds_left))
