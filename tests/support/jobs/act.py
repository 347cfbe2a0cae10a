"""Call the function that a test put under the name in the job's payload."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from signalbox.packs.job_payload import JobPayload
from signalbox.worker.job_context import JobContext

ACTS: dict[str, Callable[[Any], Any]] = {}


class Act(JobPayload):
    """Name the function."""

    name: str


ActAsync = ActAlone = ActWrongly = ActWithin = Act


def act(context: JobContext) -> Any:
    """Call it."""
    return ACTS[context.payload.name](context)


act_alone = act_within = act


async def act_async(context: Any) -> Any:
    """Call it, and wait for its answer."""
    return await ACTS[context.payload.name](context)


act_wrongly = act_async
