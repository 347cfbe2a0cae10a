"""Publish each change of a job's status on the stack's own EventBridge bus, in batches, once it is committed.

Events are for dashboards and followers; the truth stays in Postgres. A crash between a commit and its events loses
them. To be sure to learn of a job's end, submit a job that depends on it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from signalbox.aws.clients import Clients
from signalbox.aws.errors import is_aws_error
from signalbox.runtime.log import Logger

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_events.type_defs import PutEventsRequestEntryTypeDef

SOURCE, DETAIL_TYPE = "signalbox", "Job Status Changed"
CALL = 10  # as many as EventBridge takes
AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class StatusEvent:
    """Describe the status that a job has taken."""

    job_id: str
    job_type: str
    lane: str
    tenant: str | None
    status: str
    attempt: int | None = None


def publish_events(clients: Clients, bus: str | None, changes: Sequence[StatusEvent], log: Logger) -> int:
    """Publish the events, and return how many EventBridge took. A refusal is logged and not raised."""
    if not bus or not changes:
        return 0
    calls = [changes[start : start + CALL] for start in range(0, len(changes), CALL)]
    events = clients.events  # made here, since the threads share it
    with ThreadPoolExecutor(min(AT_ONCE, len(calls))) as threads:
        taken = sum(threads.map(lambda call: _put(events, bus, call, log), calls))
    if taken < len(changes):
        log.warning("events.not_published", extra={"number": len(changes) - taken})
    return taken


def _put(events: EventBridgeClient, bus: str, changes: Sequence[StatusEvent], log: Logger) -> int:
    entries: list[PutEventsRequestEntryTypeDef] = [
        {"Source": SOURCE, "DetailType": DETAIL_TYPE, "Detail": json.dumps(asdict(change)), "EventBusName": bus}
        for change in changes
    ]
    try:
        answer = events.put_events(Entries=entries)
    except Exception as error:
        if not is_aws_error(error):
            raise
        log.warning("events.refused", extra={"bus": bus, "error": type(error).__name__})
        return 0
    return len(entries) - int(answer.get("FailedEntryCount", 0))
