"""A job that only waits, as one that asks another service does: as a plain function, and as an `async def` one.

A third notes its start and its end in a ledger: a database that no trouble of its queue reaches.
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
    """How long."""

    number: int = 0
    seconds: float


class WaitOnLoop(WaitAwhile):
    """The same."""


class WaitAndNote(WaitAwhile):
    """And where."""

    ledger: str


def wait_awhile(context: JobContext) -> None:
    """Block its thread."""
    time.sleep(context.payload.seconds)


async def wait_on_loop(context: JobContext) -> None:
    """Leave the loop to others meanwhile."""
    await asyncio.sleep(context.payload.seconds)


def wait_and_note(context: JobContext) -> None:
    """Block its thread between the two notes."""
    ledger = _connect(context.payload.ledger)
    ledger.execute(NOTE, (context.job.id, os.getpid(), "start"))
    time.sleep(context.payload.seconds)
    ledger.execute(NOTE, (context.job.id, os.getpid(), "end"))


@cache
def _connect(ledger: str) -> Connection:
    """Return the connection that the threads of this process share."""
    return psycopg.connect(ledger, autocommit=True, options="-c synchronous_commit=off")
