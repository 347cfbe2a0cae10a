"""Says every few seconds that a batch is being worked on and how far the job at work is; hears of cancellations.

A thread with a connection of its own, opened only once the batch has run for one interval: most never get so far. That
it can't reach the database is no fault of the jobs: their lease holds without it.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Self

import psycopg

from signalbox.database import Connection, Database
from signalbox.errors import SignalboxError
from signalbox.jobs.context import Progress
from signalbox.queries import load_queries

SQL = load_queries(__file__)
INTERVAL_SECONDS = 15.0


class Heartbeat:
    """Beats from the second interval of a `with` block on."""

    def __init__(self, database: Database, token: uuid.UUID, interval: float = INTERVAL_SECONDS) -> None:
        self._database, self._token, self._interval = database, token, interval
        self._over = threading.Event()
        self._at_work: tuple[str, Progress] | None = None
        self.also: Callable[[Connection], None] = lambda _: None  # done with each beat, on its connection
        self.unwanted: frozenset[str] = frozenset()  # of the batch's jobs, those that somebody wants to be cancelled
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def working_on(self, job_id: str, progress: Progress) -> None:
        self._at_work = (job_id, progress)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        connection: Connection | None = None
        while not self._over.wait(self._interval):
            with suppress(psycopg.Error, SignalboxError):
                connection = connection or self._database.open_another()
                try:
                    self._beat(connection)
                    self.also(connection)
                except psycopg.Error:
                    connection.close()
                    connection = None
        if connection is not None:
            connection.close()

    def _beat(self, connection: Connection) -> None:
        job_id, progress = self._at_work or (None, Progress())
        values = {"token": self._token, "job_id": job_id, "percent": progress.percent, "message": progress.message}
        rows = connection.execute(SQL["beat"], values).fetchall()
        self.unwanted = frozenset(found for found, cancel_asked in rows if cancel_asked)
        progress.cancel_asked = job_id in self.unwanted
