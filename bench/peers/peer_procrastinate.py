"""Drain jobs that do nothing, or only wait, with procrastinate.

It has one worker with asynchronous tasks that stops once its queue is empty. Run by the peers' interpreter:
`peer_procrastinate.py DSN JOBS SECONDS`, then a line `CONCURRENCY` a drain; prints a line of seconds each. Its jobs and
their events are kept, as they are by default.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from time import perf_counter

import uvloop
from procrastinate import App, PsycopgConnector


async def drain(app: App, jobs: int, concurrency: int) -> float:
    await app.tasks["nothing"].batch_defer_async(*({"number": number} for number in range(jobs)))
    began = perf_counter()
    await app.run_worker_async(wait=False, concurrency=concurrency, listen_notify=False, install_signal_handlers=False)
    return perf_counter() - began


async def serve(dsn: str, jobs: int, wait: float) -> None:
    logging.getLogger("procrastinate").setLevel(logging.WARNING)
    app = App(connector=PsycopgConnector(conninfo=dsn, max_size=20))

    @app.task(name="nothing")  # type: ignore[untyped-decorator]
    async def nothing(number: int) -> None:
        if wait:
            await asyncio.sleep(wait)

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        for line in sys.stdin:
            print(await drain(app, jobs, int(line)), flush=True)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
