"""Run a host of pgqueuer in the cells, or the process that submits to it, in the peers' interpreter.

`cell_peer.py work DSN LEDGER SECONDS AT_ONCE` works until it is killed; pgqueuer's own supervisor restarts it if its
connection breaks. `cell_peer.py submit DSN` installs the tables, then reads a number of jobs a line, and prints how
many it has submitted: that many or 0.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import asyncpg
import pgqueuer
import psycopg
import uvloop
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

NOTE = "INSERT INTO notes (job, host, what) VALUES (%s, %s, %s)"
STALE = timedelta(seconds=5)  # a dead host's jobs are retried after this time, as our leases expire in the cells


async def work(dsn: str, ledger_dsn: str, seconds: str, at_once: str) -> None:
    asynchronous = "-c synchronous_commit=off"
    ledger = await psycopg.AsyncConnection.connect(ledger_dsn, autocommit=True, options=asynchronous)

    async def wait_and_note(job: Job) -> None:
        await ledger.execute(NOTE, (str(job.id), os.getpid(), "start"))
        await asyncio.sleep(float(seconds))
        await ledger.execute(NOTE, (str(job.id), os.getpid(), "end"))

    @asynccontextmanager
    async def make_queue() -> AsyncIterator[pgqueuer.PgQueuer]:
        queue = pgqueuer.PgQueuer(AsyncpgDriver(await asyncpg.connect(dsn)))
        queue.entrypoint("wait_and_note")(wait_and_note)
        yield queue

    await pgqueuer.run(
        make_queue,
        batch_size=int(at_once) // 2,  # the most that it takes for that many at once
        max_concurrent_tasks=int(at_once),
        dequeue_timeout=STALE,
        heartbeat_timeout=STALE,
        shutdown_on_listener_failure=True,
        restart_on_failure=True,
        restart_delay=timedelta(seconds=0.5),
    )


async def submit(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    await Queries(AsyncpgDriver(connection)).install()
    for number in map(int, sys.stdin):
        try:
            if connection.is_closed():
                connection = await asyncpg.connect(dsn)
            queries = Queries(AsyncpgDriver(connection))
            await queries.enqueue(["wait_and_note"] * number, [None] * number, [0] * number)
            print(number, flush=True)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            print(0, flush=True)


if __name__ == "__main__":
    role, *arguments = sys.argv[1:]
    uvloop.run(work(*arguments) if role == "work" else submit(*arguments))
