"""Lend the connections that a worker's jobs borrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, LifoQueue

from signalbox.errors import DatabaseUnavailable
from signalbox.postgres.connection import Database


class NoConnectionFree(DatabaseUnavailable):
    """No connection of the pool became free in time."""


class DatabasePool:
    """Own at most `size` connections, each opened when it is first needed."""

    def __init__(self, make: Callable[[], Database], size: int) -> None:
        self.size = size
        self._make = make
        self._lent: set[Database] = set()
        # The last one given back is lent first, so that few are opened where few are needed.
        self._free: LifoQueue[Database] = LifoQueue()
        for _ in range(size):
            self._free.put(make())

    def take(self, seconds: float | None = None) -> Database:
        """Wait for a free connection, at most for this long. The caller gives it back."""
        try:
            database = self._free.get(timeout=None if seconds is None else max(0.0, seconds))
        except Empty:
            raise NoConnectionFree(f"none of the worker's {self.size} connections became free") from None
        self._lent.add(database)
        return database

    def give_back(self, database: Database, *, spoilt: bool = False) -> None:
        """Take a connection back. `spoilt`: a cancelled statement of it may hit the next user's statement."""
        if not self._was_lent(database):
            database.close()  # the pool has replaced it
            return
        if spoilt:
            database.close()
        else:
            database.abandon()
            database.hand_back()
        self._free.put(database)

    def replace(self, database: Database) -> None:
        """Put a new connection in the place of one that may never be given back."""
        if self._was_lent(database):
            self._free.put(self._make())
            database.abandon()
            database.close()

    def _was_lent(self, database: Database) -> bool:
        """Return True for the first call that gives it back."""
        try:
            self._lent.remove(database)
        except KeyError:
            return False
        return True

    @contextmanager
    def lend(self, seconds: float | None = None) -> Iterator[Database]:
        database = self.take(seconds)
        try:
            yield database
        finally:
            self.give_back(database)

    def close(self) -> None:
        while not self._free.empty():
            self._free.get().close()
        for database in self._lent:
            database.close()
