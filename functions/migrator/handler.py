"""The migrator: brings the schema up to this code, or says what that would take. A deploy invokes it, or a person."""

import os
from functools import cache
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from signalbox.migrator import Migrator


@cache
def migrator() -> Migrator:
    return Migrator.start(os.environ)


def handler(event: object, context: LambdaContext) -> dict[str, Any]:
    return migrator().act(event, applied_by=f"{context.function_name}/{context.aws_request_id}")
