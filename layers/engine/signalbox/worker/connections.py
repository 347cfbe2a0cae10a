"""Lend connections to jobs: a few serve many jobs that wait, and Postgres sees a known number.

A transactional job, and one in the main thread, has a connection to itself for its attempt. Any other borrows one for
each statement or transaction.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

import psycopg
from psycopg.rows import TupleRow, tuple_row

from signalbox.errors import DatabaseUnavailable
from signalbox.packs.outcome import JobTimedOut, Permanent
from signalbox.postgres.async_connection import AsyncConnection, AsyncDatabasePool
from signalbox.postgres.connection import UNDER_WAY, Connection, Database
from signalbox.postgres.fork import end_child, refuse_child
from signalbox.postgres.pool import DatabasePool
from signalbox.worker.timeout import SignalTimer, ThreadTimer

LEFT_OPEN = (
    "the job left a transaction open, and what it wrote there is undone: "
    "`with context.db.transaction():` ends it in any case"
)
_BY_ITSELF = (
    "context.db has no '{}': it borrows a connection for each statement or transaction; "
    "`with context.db.connection() as db:` borrows one for more"
)


# The connections that blocks have borrowed, by borrower. A thread or a task that the job starts outside such a block
# borrows its own connection; a task inside the block shares the block's.
_held: ContextVar[Mapping[object, Any]] = ContextVar("_held", default=MappingProxyType({}))


class Borrower:
    """Borrow a connection for each statement or transaction. Only its own methods are available."""

    __slots__ = ("_owner", "_pool", "row_factory")

    def __init__(self, pool: Any) -> None:
        self.row_factory: Any = tuple_row
        self._pool = pool
        self._owner = os.getpid()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(_BY_ITSELF.format(name))

    def __setattr__(self, name: str, value: Any) -> None:
        if not hasattr(type(self), name):
            raise AttributeError(_BY_ITSELF.format(name))
        object.__setattr__(self, name, value)

    @contextmanager
    def _holding(self, connection: Any) -> Iterator[None]:
        token = _held.set({**_held.get(), self: connection})
        try:
            yield
        finally:
            # The collector closes the generator that a job has left open, in a context of its own.
            with suppress(ValueError):
                _held.reset(token)


class LentConnection(Borrower):
    """Serve as `context.db` in threads beside other jobs: a connection for each statement or transaction."""

    __slots__ = ("_ends_at", "_lent", "_timer")

    def __init__(self, pool: DatabasePool, timer: SignalTimer | ThreadTimer, ends_at: float) -> None:
        super().__init__(pool)
        self._timer, self._ends_at = timer, ends_at  # the worker's time
        self._lent: set[Database] = set()

    def take_back(self) -> bool:
        """Replace connections that an ended job still keeps. Return whether it had left something open there."""
        kept = list(self._lent)
        left_open = any(database.is_busy for database in kept)
        for database in kept:
            self._pool.replace(database)
        return left_open

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
        """Lend one connection for the whole block, for what the methods above can't do."""
        if (held := _held.get().get(self)) is not None:
            yield held
            return
        refuse_child(self._owner)
        self._timer.pause()  # waiting for a connection is no part of a job's time
        try:
            database = self._pool.take(self._ends_at - time.monotonic())
        except DatabaseUnavailable:
            self._timer.resume()
            raise
        self._lent.add(database)
        lent: Connection | None = None
        try:
            lent = database.connection()
            lent.row_factory = self.row_factory
            with self._holding(lent):
                self._timer.resume(lent)
                yield lent
        finally:
            end_child(self._owner)
            try:
                self._timer.pause()
            except JobTimedOut:  # it was raised on the way in
                self._timer.pause()
            self._lent.discard(database)
            left_open = database.is_busy
            self._pool.give_back(database, spoilt=lent in self._timer.cancelled)
            self._timer.resume()
        if self._timer.rang:  # while nothing could be raised
            raise JobTimedOut
        if left_open:
            raise Permanent(LEFT_OPEN)


class AsyncLentConnection(Borrower):
    """Do the same for `async def` jobs."""

    __slots__ = ("_lent",)

    def __init__(self, pool: AsyncDatabasePool) -> None:
        super().__init__(pool)
        self._lent: set[AsyncConnection] = set()

    async def take_back(self) -> bool:
        """Close connections that an ended job still keeps. Return whether it had left something open there."""
        kept = list(self._lent)
        left_open = any(connection.info.transaction_status in UNDER_WAY for connection in kept)
        for connection in kept:
            await self._pool.give_back(connection, spoilt=True)
        return left_open

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
        """Lend one connection for the whole block, for what the methods above can't do."""
        if (held := _held.get().get(self)) is not None:
            yield held
            return
        refuse_child(self._owner)
        connection = await self._pool.take()
        self._lent.add(connection)
        left_open = False
        try:
            connection.row_factory = self.row_factory
            with self._holding(connection):
                yield connection
            left_open = connection.info.transaction_status in UNDER_WAY
        finally:
            end_child(self._owner)
            self._lent.discard(connection)
            await self._pool.give_back(connection)
        if left_open:
            raise Permanent(LEFT_OPEN)
