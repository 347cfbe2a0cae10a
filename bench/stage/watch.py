"""Look at a database again and again while something else is measured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import LiteralString

import psycopg


@contextmanager
def watched(dsn: str, query: LiteralString, each_seconds: float) -> Iterator[list[float]]:
    """Yield a list to which each look adds the numbers that the query returns; it begins with 0."""
    over, seen = Event(), [0.0]

    def look() -> None:
        with psycopg.connect(dsn, autocommit=True) as db:
            while not over.wait(each_seconds):
                seen.extend(float(number) for (number,) in db.execute(query))

    thread = Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()
