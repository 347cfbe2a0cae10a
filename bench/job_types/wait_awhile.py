"""A job that only waits, as one that asks another service does: as a plain function, and as an `async def` one."""

import asyncio
import time

from signalbox.jobs.payload import JobPayload
from signalbox.worker.job_context import JobContext


class WaitAwhile(JobPayload):
    """How long."""

    number: int = 0
    seconds: float


class WaitOnLoop(WaitAwhile):
    """The same."""


def wait_awhile(context: JobContext) -> None:
    """Block its thread."""
    time.sleep(context.payload.seconds)


async def wait_on_loop(context: JobContext) -> None:
    """Leave the loop to others meanwhile."""
    await asyncio.sleep(context.payload.seconds)
