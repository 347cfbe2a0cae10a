"""Drain jobs that do nothing, or only wait, with pgqueuer, as its own benchmark tool does.

It uses asyncpg and several queue managers on one event loop. Run by the peers' interpreter: `peer_pgqueuer.py DSN JOBS
SECONDS`, then a line `BATCH MANAGERS AT_ONCE` a drain; prints a line of seconds each. AT_ONCE holds for each manager,
and 0 is no limit. Its tables keep their default durability, and its history table stays as it is.
"""

from __future__ import annotations

import asyncio
import sys
from time import perf_counter

import asyncpg
import uvloop
from pgqueuer import PgQueuer, types
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries


async def drain(dsn: str, jobs: int, wait: float, way: str) -> float:
    batch, managers, at_once = map(int, way.split())
    connections = [await asyncpg.connect(dsn) for _ in range(managers)]
    queries = Queries(AsyncpgDriver(connections[0]))
    await queries.enqueue(["nothing"] * jobs, [b""] * jobs, [0] * jobs)
    done = 0

    async def nothing(_: Job) -> None:
        nonlocal done
        if wait:
            await asyncio.sleep(wait)
        done += 1

    queues = [PgQueuer(AsyncpgDriver(connection)) for connection in connections]
    for queue in queues:
        queue.entrypoint("nothing")(nothing)
    began = perf_counter()
    drained = types.QueueExecutionMode.drain
    await asyncio.gather(*(q.run(batch_size=batch, mode=drained, max_concurrent_tasks=at_once) for q in queues))
    took = perf_counter() - began
    if done != jobs:
        raise RuntimeError(f"{done} of {jobs} jobs were done")
    for connection in connections:
        await connection.close()
    return took


async def install(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    await Queries(AsyncpgDriver(connection)).install()
    await connection.close()


def main(dsn: str, jobs: int, wait: float) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(install(dsn))
        for line in sys.stdin:
            print(runner.run(drain(dsn, jobs, wait, line)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
