"""Connections for coroutines: a few of them serve many jobs that wait on one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow, tuple_row

from signalbox.database import CANCEL_PATIENCE_SECONDS, Database, has_gone

AsyncConnection = psycopg.AsyncConnection[TupleRow]


class AsyncDatabasePool:
    """At most `size` connections, each opened when it is first needed. Where and how, its Database knows."""

    def __init__(self, database: Database, size: int) -> None:
        self._database = database
        self._places = asyncio.Semaphore(size)
        self._free: list[AsyncConnection] = []
        self._loop: asyncio.AbstractEventLoop | None = None  # that they belong to

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[AsyncConnection]:
        """Lend a connection; one that comes back in the middle of something is closed."""
        async with self._places:
            connection = await self._take()
            try:
                yield connection
            finally:
                if connection.info.transaction_status == TransactionStatus.IDLE:
                    connection.row_factory = tuple_row
                    self._free.append(connection)
                else:
                    with suppress(psycopg.Error):
                        await connection.close()

    async def _take(self) -> AsyncConnection:
        while self._free:
            connection = self._free.pop()
            if not has_gone(connection):
                return connection
            await connection.close()
        return await self._open()

    def close(self) -> None:
        """From outside of the event loop, which must be running."""
        if self._loop is not None:
            asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(CANCEL_PATIENCE_SECONDS)

    async def _close(self) -> None:
        while self._free:
            await self._free.pop().close()

    async def _open(self) -> AsyncConnection:
        self._loop = asyncio.get_running_loop()
        try:
            return await self._connect(fresh=False)
        except psycopg.OperationalError:  # the secret may have been rotated since it was read
            return await self._connect(fresh=True)

    async def _connect(self, *, fresh: bool) -> AsyncConnection:
        conninfo, options = await asyncio.to_thread(self._database.options, fresh=fresh)
        return await psycopg.AsyncConnection.connect(conninfo, **options)
