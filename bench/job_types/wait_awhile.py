"""Run a job that only waits, as one that calls another service does: as a plain function, or as an `async def` one.

A third notes its start and its end in a ledger: a database that no fault of its queue affects.
"""

import asyncio
import os
import time
from functools import cache

import psycopg

from signalbox.packs.job_payload import JobPayload
from signalbox.postgres.connection import Connection
from signalbox.worker.job_context import JobContext

NOTE = "INSERT INTO notes (job, host, what) VALUES (%s, %s, %s)"


class WaitAwhile(JobPayload):
    """Say how long to wait."""

    number: int = 0
    seconds: float


class WaitOnLoop(WaitAwhile):
    """Say how long to wait on the event loop."""


class WaitAndNote(WaitAwhile):
    """Say how long to wait, and where to note it."""

    ledger: str


def wait_awhile(context: JobContext) -> None:
    """Block the thread."""
    time.sleep(context.payload.seconds)


async def wait_on_loop(context: JobContext) -> None:
    """Leave the event loop to others meanwhile."""
    await asyncio.sleep(context.payload.seconds)


def wait_and_note(context: JobContext) -> None:
    """Block the thread between the two notes."""
    ledger = _connect(context.payload.ledger)
    ledger.execute(NOTE, (context.job.id, os.getpid(), "start"))
    time.sleep(context.payload.seconds)
    ledger.execute(NOTE, (context.job.id, os.getpid(), "end"))


@cache
def _connect(ledger: str) -> Connection:
    """Return the connection that the threads of this process share."""
    return psycopg.connect(ledger, autocommit=True, options="-c synchronous_commit=off")
