"""Stores what must not be lost because it can't be asked for again, through a restart of the database if need be.

The run's own connection may break while the outside world answers; then others are opened, for this alone: whatever
else the task does on its own fails, and has lost nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, LiteralString

import psycopg

from signalbox.postgres.connection import Connection

# On further connections, a second apart: a restart takes a moment.
TRIES = 4

Store = Callable[[LiteralString, Mapping[str, Any]], None]


def prepare_store(connection: Connection) -> Store:
    """Runs a statement, which may run twice. Prepared while the connection lives: a dead one tells nothing."""
    dsn, password = connection.info.dsn, connection.info.password

    def store(statement: LiteralString, values: Mapping[str, Any]) -> None:
        try:
            connection.execute(statement, values)
        except psycopg.OperationalError:
            _store_anew(dsn, password, statement, values)

    return store


def _store_anew(dsn: str, password: str, statement: LiteralString, values: Mapping[str, Any]) -> None:
    for tries_left in reversed(range(TRIES)):
        try:
            with psycopg.connect(dsn, password=password, autocommit=True, prepare_threshold=None) as connection:
                connection.execute(statement, values)
                return
        except psycopg.OperationalError:
            if not tries_left:
                raise
            time.sleep(1)
