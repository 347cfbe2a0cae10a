"""Read and describe a lane's messages: `{"job_id", "job_type"}`, and no more. Unreadable ones stay in the queue."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pydantic_core import from_json

from signalbox.errors import PayloadRefused
from signalbox.runtime.log import Logger

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def read_messages(event: object, log: Logger) -> tuple[dict[str, str], list[str]]:
    """Return the jobs to claim, with the type in their message, and the unreadable messages."""
    if not isinstance(event, dict) or not isinstance(event.get("Records"), list):
        raise PayloadRefused('the worker takes events of SQS, {"Records": [...]}, and this is not one')
    jobs: dict[str, str] = {}
    unreadable: list[str] = []
    for record in event["Records"]:
        job_id, job_type = read_body(record["body"])
        if job_id is None:
            unreadable.append(record["messageId"])
            log.warning("message.unreadable", extra={"message_id": record["messageId"]})
        else:
            jobs[job_id] = job_type
    return jobs, unreadable


def read_body(body: str) -> tuple[str | None, str]:
    """Return the id in a message's body, if it is one of ours, and the type."""
    try:
        message: Any = from_json(body)
    except (ValueError, TypeError):  # TypeError: half a surrogate pair, which is no text
        return None, ""
    if not isinstance(message, dict) or not isinstance(job_id := message.get("job_id"), str):
        return None, ""
    return (job_id.lower() if _ID.fullmatch(job_id.lower()) else None), str(message.get("job_type", ""))


def read_job_id(body: str) -> str | None:
    return read_body(body)[0]


_UNFIT = re.compile(r"[^!-~]")  # SQS takes up to 128 printable characters of ASCII, no spaces


@dataclass(frozen=True, slots=True)
class JobMessage:
    """Describe the message that is sent for a job."""

    job_id: str
    job_type: str
    lane: str
    tenant: str | None = None
    delay: timedelta = timedelta(0)

    @property
    def group(self) -> str:
        """Return the tenant, by which fair queues share. A message without a group would count as its own tenant."""
        return _UNFIT.sub("-", self.tenant or "")[:128] or "-"
