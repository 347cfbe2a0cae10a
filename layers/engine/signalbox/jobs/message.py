"""What a lane carries: `{"job_id", "job_type"}`, nothing that a job needs. Unreadable ones are left to their queue."""

from __future__ import annotations

import re
from typing import Any

from pydantic_core import from_json

from signalbox.errors import PayloadRefused
from signalbox.log import Logger

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def read_messages(event: object, log: Logger) -> tuple[dict[str, str], list[str]]:
    """The jobs to look at, each with one of its messages, and the messages that nobody can read."""
    if not isinstance(event, dict) or not isinstance(event.get("Records"), list):
        raise PayloadRefused('the worker takes events of SQS, {"Records": [...]}, and this is none')
    jobs: dict[str, str] = {}
    unreadable: list[str] = []
    for record in event["Records"]:
        job_id = read_job_id(record["body"])
        if job_id is None:
            unreadable.append(record["messageId"])
            log.warning("message.unreadable", extra={"message_id": record["messageId"]})
        else:
            jobs[job_id] = record["messageId"]
    return jobs, unreadable


def read_job_id(body: str) -> str | None:
    """The id in a message's body, if it is one of ours."""
    try:
        message: Any = from_json(body)
    except (ValueError, TypeError):  # TypeError: half a surrogate pair, which is no text
        return None
    job_id = message.get("job_id") if isinstance(message, dict) else None
    return job_id.lower() if isinstance(job_id, str) and _ID.fullmatch(job_id.lower()) else None
