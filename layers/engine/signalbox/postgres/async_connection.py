"""Connect coroutines to the database: a few connections serve many jobs that wait on one event loop."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress

import psycopg
from psycopg.abc import RV, PQGen
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow, tuple_row

from signalbox.postgres.connection import CANCEL_PATIENCE_SECONDS, WAIT_INTERVAL, Database, has_gone, has_open_blocks
from signalbox.postgres.fork import refuse_child

AsyncConnection = psycopg.AsyncConnection[TupleRow]


class OwnAsyncConnection(psycopg.AsyncConnection[TupleRow]):
    """Refuse use outside the process that opened the connection."""

    owner = 0

    async def wait(self, gen: PQGen[RV], interval: float = WAIT_INTERVAL, timeout: float | None = None) -> RV:
        """Run a statement. Every statement passes here."""
        refuse_child(self.owner or os.getpid())
        return await super().wait(gen, interval, timeout)


class AsyncDatabasePool:
    """Own at most `size` connections, each opened when first needed. Its Database knows where and how."""

    def __init__(self, database: Database, size: int) -> None:
        self._database = database
        self._places = asyncio.Semaphore(size)
        self._free: list[AsyncConnection] = []
        self._lent: set[AsyncConnection] = set()
        self._loop: asyncio.AbstractEventLoop | None = None  # the event loop that they belong to

    async def take(self) -> AsyncConnection:
        """Wait for a free connection. The caller gives it back."""
        await self._places.acquire()
        try:
            connection = await self._find()
        except BaseException:
            self._places.release()
            raise
        self._lent.add(connection)
        return connection

    async def give_back(self, connection: AsyncConnection, *, spoilt: bool = False) -> None:
        """Take a connection back; close it if it is busy or spoilt. A second call does nothing."""
        if connection not in self._lent:
            return
        self._lent.remove(connection)
        try:
            idle = connection.info.transaction_status == TransactionStatus.IDLE
            if idle and not spoilt and not has_open_blocks(connection):
                connection.row_factory = tuple_row
                self._free.append(connection)
            else:
                with suppress(psycopg.Error):
                    await connection.close()
        finally:
            self._places.release()

    async def _find(self) -> AsyncConnection:
        while self._free:
            connection = self._free.pop()
            if not has_gone(connection):
                return connection
            await connection.close()
        return await self._open()

    def close(self) -> None:
        """Close the free connections, from outside the event loop, which must be running."""
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
        connection = await OwnAsyncConnection.connect(conninfo, **options)
        connection.owner = os.getpid()
        return connection
