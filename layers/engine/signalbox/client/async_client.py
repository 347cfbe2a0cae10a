"""Submit jobs from coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from signalbox.client.client import UNSENT_AFTER, Client
from signalbox.client.connections import borrow_async
from signalbox.client.in_thread import InThread
from signalbox.packs.pack import Pack
from signalbox.submit.insert import submit
from signalbox.submit.new_job import NewJob, Submitted


class AsyncClient:
    """Submit jobs from coroutines, as `Client` does from functions and with the same arguments."""

    def __init__(self, stack: str | None = None, packs: Sequence[Pack] | None = None) -> None:
        self._client = Client(stack, packs)

    async def submit(self, connection: Any, jobs: Sequence[NewJob]) -> list[Submitted]:
        """Store the jobs in the transaction of the connection, all of them or none, in the order given.

        The connection is an AsyncConnection of psycopg 3 or of SQLAlchemy, or an AsyncSession. An AsyncSession and a
        connection in autocommit let the client know of the commit, and it sends the jobs then, without the caller's
        waiting. After the commit of any other connection, hand the answer to `send`.
        """
        loop = asyncio.get_running_loop()
        borrowed = await borrow_async(connection)
        db: Any = InThread(borrowed.driver, loop)
        work = asyncio.create_task(
            asyncio.to_thread(submit, db, self._client.job_types, jobs, datetime.now(UTC), UNSENT_AFTER)
        )
        try:
            submitted = await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.wait([work])  # the connection is the caller's again only when the thread is done with it
            raise
        borrowed.after_commit(lambda: loop.run_in_executor(None, self._client.send, submitted))
        return submitted

    async def send(self, submitted: Sequence[Submitted]) -> int:
        """Send the jobs that need not wait; return how many were. Call it after the commit, or not at all.

        It does not raise when AWS is unavailable, and sending twice changes nothing.
        """
        return await asyncio.to_thread(self._client.send, submitted)
