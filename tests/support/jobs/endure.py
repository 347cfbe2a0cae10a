"""Define jobs to try faults on: each first writes its start to a file that outlives its process."""

from __future__ import annotations

import asyncio
import os
import time
from datetime import timedelta
from typing import Any

from signalbox.jobs.job import ClaimedJob
from signalbox.packs.job_payload import JobPayload
from signalbox.packs.job_type import JobType
from signalbox.worker.job_context import JobContext

STARTS = "SIGNALBOX_TEST_STARTS"  # names the file
_MODULE, _TIMEOUT = "tests.support.jobs.endure", timedelta(seconds=5)
ENDURE_TYPES = (
    JobType("endure", "waits", _MODULE, timeout=_TIMEOUT),
    JobType("endure_async", "waits on the loop", _MODULE, timeout=_TIMEOUT, side_by_side=20),
    JobType("endure_within", "writes with its end", _MODULE, timeout=_TIMEOUT, transactional=True),
)


class Endure(JobPayload):
    """Say how long to wait."""

    seconds: float


EndureAsync = EndureWithin = Endure


def endure(context: JobContext) -> None:
    """Wait, with the connection lent once."""
    _write_start(context.job)
    context.db.execute("SELECT 1")
    time.sleep(context.payload.seconds)


async def endure_async(context: Any) -> None:
    """Wait on the loop."""
    _write_start(context.job)
    await context.db.execute("SELECT 1")
    await asyncio.sleep(context.payload.seconds)


def endure_within(context: JobContext) -> None:
    """Write a row, and wait."""
    _write_start(context.job)
    context.db.execute("INSERT INTO notes (job_id) VALUES (%s)", (context.job.id,))
    time.sleep(context.payload.seconds)


def _write_start(job: ClaimedJob) -> None:
    file = os.open(os.environ[STARTS], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{job.id} {job.token}\n".encode())
    os.close(file)
