"""Answer the event, and which process this is."""

import os
from typing import Any


def handler(event: Any, context: Any) -> Any:
    return {
        "event": event,
        "pid": os.getpid(),
        "request_id": context.aws_request_id,
        "arn": context.invoked_function_arn,
        "version": context.function_version,
        "remaining_ms": context.get_remaining_time_in_millis(),
    }
