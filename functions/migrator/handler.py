"""Bring the schema up to this code, or say what that would take. Each deploy invokes the migrator, or a person."""

import os
from functools import cache
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from signalbox.migrate.deploy_hook import is_deploy
from signalbox.migrate.migrator import Migrator, serve_deploy


@cache
def migrator() -> Migrator:
    return Migrator.start(os.environ)


def handler(event: object, context: LambdaContext) -> dict[str, Any]:
    applied_by = f"{context.function_name}/{context.aws_request_id}"
    if is_deploy(event):
        return serve_deploy(event, migrator, os.environ, applied_by, context.get_remaining_time_in_millis() / 1000)
    return migrator().act(event, applied_by)
