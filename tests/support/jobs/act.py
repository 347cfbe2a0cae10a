"""A job that calls the function which a test has put under the name in its payload."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from signalbox.packs.job_payload import JobPayload
from signalbox.worker.job_context import JobContext

ACTS: dict[str, Callable[[Any], Any]] = {}


class Act(JobPayload):
    """Which of them."""

    name: str


ActAsync = ActAlone = ActWrongly = ActWithin = Act


def act(context: JobContext) -> Any:
    """Call it."""
    return ACTS[context.payload.name](context)


act_alone = act_within = act


async def act_async(context: Any) -> Any:
    """Call it, and wait for what it answers."""
    return await ACTS[context.payload.name](context)


act_wrongly = act_async
