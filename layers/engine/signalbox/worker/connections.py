"""Connections that jobs borrow: a few of them serve many jobs that wait, and Postgres sees a known number.

A transactional job, and one in the main thread, has a connection to itself for its attempt. Any other borrows one for
each statement or transaction.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow, tuple_row

from signalbox.async_database import AsyncConnection, AsyncDatabasePool
from signalbox.database import Connection, DatabasePool
from signalbox.jobs.outcome import JobTimedOut, Permanent
from signalbox.worker.timeout import Alarm, ThreadTimer

LEFT_OPEN = (
    "the job left a transaction open, and what it wrote there is undone: "
    "`with context.db.transaction():` ends it in any case"
)


class LentConnection:
    """`context.db` of a job that runs beside others in threads: a connection for each statement or transaction."""

    def __init__(self, pool: DatabasePool, timer: Alarm | ThreadTimer) -> None:
        self.row_factory: Any = tuple_row
        self._pool, self._timer = pool, timer
        self._held: Connection | None = None

    def execute(self, query: Any, params: Any = None, **options: Any) -> psycopg.Cursor[TupleRow]:
        with self.connection() as db:
            return db.execute(query, params, **options)

    @contextmanager
    def cursor(self, *args: Any, **options: Any) -> Iterator[psycopg.Cursor[Any]]:
        with self.connection() as db, db.cursor(*args, **options) as cursor:
            yield cursor

    @contextmanager
    def transaction(self, *args: Any, **options: Any) -> Iterator[psycopg.Transaction]:
        with self.connection() as db, db.transaction(*args, **options) as transaction:
            yield transaction

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """One for all that is done in the block: for what the methods above can't do."""
        if self._held is not None:
            yield self._held
            return
        self._timer.pause()  # waiting for a connection is no part of a job's time
        database = self._pool.take()
        try:
            self._held = database.connection()
            self._held.row_factory = self.row_factory
            self._timer.resume(self._held)
            yield self._held
        finally:
            try:
                self._timer.pause()
            except JobTimedOut:  # it came up on the way in
                self._timer.pause()
            self._held = None
            left_open = database.is_busy
            self._pool.give_back(database, spoilt=self._timer.cancelling)
            self._timer.cancelling = False
            self._timer.resume()
        if self._timer.rang:  # while nothing could be raised
            raise JobTimedOut
        if left_open:
            raise Permanent(LEFT_OPEN)


class AsyncLentConnection:
    """The same for `async def` jobs."""

    def __init__(self, pool: AsyncDatabasePool) -> None:
        self.row_factory: Any = tuple_row
        self._pool = pool
        self._held: AsyncConnection | None = None

    async def execute(self, query: Any, params: Any = None, **options: Any) -> psycopg.AsyncCursor[TupleRow]:
        async with self.connection() as db:
            return await db.execute(query, params, **options)

    @asynccontextmanager
    async def cursor(self, *args: Any, **options: Any) -> AsyncIterator[psycopg.AsyncCursor[Any]]:
        async with self.connection() as db, db.cursor(*args, **options) as cursor:
            yield cursor

    @asynccontextmanager
    async def transaction(self, *args: Any, **options: Any) -> AsyncIterator[psycopg.AsyncTransaction]:
        async with self.connection() as db, db.transaction(*args, **options) as transaction:
            yield transaction

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection]:
        """One for all that is done in the block: for what the methods above can't do."""
        if self._held is not None:
            yield self._held
            return
        async with self._pool.lend() as connection:
            connection.row_factory = self.row_factory
            self._held = connection
            try:
                yield connection
            finally:
                self._held = None
            if connection.info.transaction_status != TransactionStatus.IDLE:
                raise Permanent(LEFT_OPEN)
