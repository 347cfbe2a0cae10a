"""Use a connection of an event loop from a thread, so that one submit serves both kinds of connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeVar

import psycopg

T = TypeVar("T")
Call = Callable[[Coroutine[Any, Any, Any]], Any]


class InThread:
    """Act as a psycopg Connection, as far as a submit needs one. Each call waits for the AsyncConnection's loop."""

    def __init__(self, connection: psycopg.AsyncConnection[Any], loop: asyncio.AbstractEventLoop) -> None:
        self._connection, self._loop = connection, loop
        self.info = connection.info

    def cursor(self, **options: Any) -> CursorInThread:
        return CursorInThread(self._connection.cursor(**options), self._call)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with _entered(self._connection.transaction(), self._call):
            yield

    def _call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


class CursorInThread:
    """Act as a cursor of such a connection."""

    def __init__(self, cursor: psycopg.AsyncCursor[Any], call: Call) -> None:
        self._cursor, self._call = cursor, call

    def execute(self, query: Any, values: Any = None) -> CursorInThread:
        self._call(self._cursor.execute(query, values))
        return self

    def fetchone(self) -> Any:
        return self._call(self._cursor.fetchone())

    def fetchall(self) -> Any:
        return self._call(self._cursor.fetchall())

    @contextmanager
    def copy(self, statement: Any) -> Iterator[CopyInThread]:
        with _entered(self._cursor.copy(statement), self._call) as copy:
            yield CopyInThread(copy, self._call)


class CopyInThread:
    """Act as a COPY of such a cursor."""

    def __init__(self, copy: psycopg.AsyncCopy, call: Call) -> None:
        self._copy, self._call = copy, call

    def write(self, block: str) -> None:
        self._call(self._copy.write(block))


@contextmanager
def _entered(block: AbstractAsyncContextManager[T, Any], call: Call) -> Iterator[T]:
    inside: T = call(_enter(block))
    try:
        yield inside
    except BaseException as error:
        if not call(block.__aexit__(type(error), error, error.__traceback__)):
            raise
    else:
        call(block.__aexit__(None, None, None))


async def _enter(block: AbstractAsyncContextManager[T, Any]) -> T:
    return await block.__aenter__()
