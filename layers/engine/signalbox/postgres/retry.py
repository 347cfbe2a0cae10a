"""Repeat work that must not be lost while the database is away, as in a restart or a failover."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import psycopg

from signalbox.errors import DatabaseUnavailable
from signalbox.postgres.connection import Connection, Database

Found = TypeVar("Found")
# A server that has become a replica answers an InternalError: it takes no writes.
AWAY = (psycopg.OperationalError, psycopg.InternalError, DatabaseUnavailable)


def through_restart(
    database: Database,
    act: Callable[[Connection], Found],
    *,
    seconds: float = 4.0,
    pause: float = 1.0,
    unless: tuple[type[psycopg.Error], ...] = (),
) -> Found:
    """Return what `act` returns. It may run twice, each time on a new connection, and at once after the first failure.

    A user of the old connection fails from then on, and so never commits the rest of a transaction on another.
    """
    until = time.monotonic() + seconds
    failed = False
    while True:
        try:
            return act(database.connection())
        except unless:
            raise
        except AWAY:
            if failed and time.monotonic() > until:
                raise
            database.close()
        if failed:
            time.sleep(pause)
        failed = True
