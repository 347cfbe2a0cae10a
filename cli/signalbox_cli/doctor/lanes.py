"""Check the event source mappings that read the lanes and the queues of failures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from signalbox.packs.job_type import Lane
from signalbox_cli.doctor.check import Finding, fail, ok, warn
from signalbox_cli.target.target import Target

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

# Map each queue, by its name after the stack's, to the function that has to read it.
READERS = {
    **{str(lane): "worker-heavy" if lane is Lane.HEAVY else "worker" for lane in Lane},
    **{f"{lane}-dlq": "dead-letter" for lane in Lane},
    "failed-invocations": "dead-letter",
}
_REDEPLOY = "deploy the template again"


def check_lanes(target: Target) -> list[Finding]:
    """Check that each queue is read: one that is not fills up unnoticed."""
    found = list(_faults(target, _mappings(target)))
    return found or [ok("lanes", f"{len(Lane)} lanes and what they give up, each read by its function")]


def _mappings(target: Target) -> dict[tuple[str, str], tuple[str, str]]:
    """Return (state, id) by function and queue."""
    lambda_: LambdaClient = target.client("lambda")
    found = {}
    for function in sorted(set(READERS.values())):
        name = target.function_name(function)
        for page in lambda_.get_paginator("list_event_source_mappings").paginate(FunctionName=name):
            for mapping in page["EventSourceMappings"]:
                queue = mapping.get("EventSourceArn", "").rpartition(":")[2].removeprefix(f"{target.stack}-")
                found[function, queue] = mapping["State"], mapping["UUID"]
    return found


def _faults(target: Target, mappings: dict[tuple[str, str], tuple[str, str]]) -> Iterator[Finding]:
    for queue, function in READERS.items():
        what = f"{target.stack}-{queue}"
        if (function, queue) not in mappings:
            yield fail("lanes", f"{what} is not read by {target.function_name(function)}", _REDEPLOY)
            continue
        state, uuid = mappings[function, queue]
        if state in ("Disabled", "Disabling"):
            advice = f"`aws lambda update-event-source-mapping --uuid {uuid} --enabled` enables it"
            yield warn("lanes", f"{what} is not read: its mapping is disabled", advice)
