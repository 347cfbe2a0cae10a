"""A database connection of an execution environment: opened when first needed, checked, reopened when gone.

A worker has one for its driver, and a few more that its jobs borrow.

No session state that a proxy would have to pin: no prepared statements, no session advisory locks.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg.abc import RV, PQGen
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow, tuple_row

from signalbox.errors import DatabaseUnavailable
from signalbox.postgres.error_details import conceal
from signalbox.postgres.fork import refuse_child
from signalbox.postgres.tls import secure

Connection = psycopg.Connection[TupleRow]

# A warm environment may outlive a deploy: it looks again whether the schema still serves its code.
INSPECT_AFTER_SECONDS = 60.0
CANCEL_PATIENCE_SECONDS = 5.0
WAIT_INTERVAL = 0.1  # psycopg's own, by which it notices signals
# An Aurora that has paused takes some 15 seconds to wake up, and 30 after a day.
CONNECT_PATIENCE_SECONDS = 40
UNDER_WAY = (TransactionStatus.ACTIVE, TransactionStatus.INTRANS, TransactionStatus.INERROR)


class OwnConnection(psycopg.Connection[TupleRow]):
    """Of functions: each statement commits by itself, or with the transaction that it is in. Nobody ends that one in
    its middle: a job's effects would be kept without its end. Nor does anybody make it wait for a commit(), which
    nobody would give: the ends of a whole batch would be lost."""

    tells_details = False  # of rows, in the words of its errors
    owner = 0  # the process that opened it

    def wait(self, gen: PQGen[RV], interval: float = WAIT_INTERVAL, timeout: float | None = None) -> RV:
        """Every statement goes by here, and so does every error of the server."""
        refuse_child(self.owner or os.getpid())
        try:
            return super().wait(gen, interval, timeout)
        except psycopg.Error as error:
            if not self.tells_details:
                conceal(error)
            raise

    def set_autocommit(self, value: bool) -> None:
        if not value:
            raise psycopg.ProgrammingError(
                "autocommit stays on: `with db.transaction():` is for what is to be committed together"
            )
        super().set_autocommit(value)

    def commit(self) -> None:
        raise psycopg.ProgrammingError(_NOT_IN_THE_MIDDLE.format("commit"))

    def rollback(self) -> None:
        raise psycopg.ProgrammingError(_NOT_IN_THE_MIDDLE.format("rollback"))


_NOT_IN_THE_MIDDLE = (
    "{}() is not for this connection, which commits each statement by itself, what is in a transaction() at its end, "
    "and what a transactional job does together with the job's end: raise an error to undo it"
)


@contextmanager
def transaction_to_end(db: Connection, seconds: float) -> Iterator[None]:
    """A transaction whose last statement may have brought the COMMIT along, which saves a round trip.

    The server undoes it where its client says nothing for so long: a worker that is frozen or gone keeps no locks.
    """
    db.execute(f"BEGIN; SET LOCAL idle_in_transaction_session_timeout = {seconds * 1000:.0f}".encode())
    try:
        yield
        if db.info.transaction_status != TransactionStatus.IDLE:
            db.execute("COMMIT")
    except BaseException:
        _roll_back(db)
        raise


def _roll_back(db: Connection) -> None:
    """Where that fails, the connection is broken: the server undoes it, and what went wrong before is what counts."""
    with suppress(psycopg.Error):
        if db.info.transaction_status != TransactionStatus.IDLE:
            db.execute("ROLLBACK")


class Database:
    """Owns the connection. `locate` gives the DSN, `fresh` asking it to forget one that was refused; `locate_next` the
    one that a rotation under way is about to bring."""

    def __init__(
        self,
        locate: Callable[[bool], str],
        *,
        ca_bundle: str | None = None,
        application: str = "signalbox",
        inspect: Callable[[Connection], None] = lambda _: None,
        locate_next: Callable[[], str | None] = lambda: None,
        error_details: bool = False,
    ) -> None:
        self._locate = locate
        self._ca_bundle = ca_bundle
        self._application = application
        self._inspect = inspect
        self._locate_next = locate_next
        self._error_details = error_details
        self._connection: Connection | None = None
        self._inspected_at = 0.0
        self._owner = os.getpid()

    def connection(self) -> Connection:
        """The connection, alive as far as can be told without a round trip."""
        refuse_child(self._owner)
        if self._connection is None or has_gone(self._connection):
            self.close()
            self._connection = self._open()
        elif time.monotonic() > self._inspected_at + INSPECT_AFTER_SECONDS:
            self._look(self._connection)
        return self._connection

    def _look(self, connection: Connection) -> None:
        self._inspect(connection)
        self._inspected_at = time.monotonic()

    @property
    def is_busy(self) -> bool:
        """Is a statement or a transaction under way on it?"""
        return self._connection is not None and self._connection.pgconn.transaction_status in UNDER_WAY

    def abandon(self) -> None:
        """What is under way on it was given up: a statement that was interrupted, a transaction that nobody ended. The
        server would finish the one, and keep the other open."""
        if self._connection is not None and self.is_busy:
            with suppress(psycopg.Error):
                self._connection.cancel_safe(timeout=CANCEL_PATIENCE_SECONDS)
            self.close()

    def hand_back(self) -> None:
        """What whoever used it has set on it for himself is not for the next one; nor are blocks that he never left."""
        connection = self._connection
        if connection is None:
            return
        connection.row_factory, connection.cursor_factory = tuple_row, psycopg.Cursor
        set_by_him = (connection.isolation_level, connection.read_only, connection.deferrable) != (None, None, None)
        if set_by_him or has_open_blocks(connection):
            self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> Connection:
        try:
            connection = self._connect(self._locate(False))
        except psycopg.OperationalError as error:
            connection = self._connect_anew(error)
        try:
            self._look(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def options(self, *, fresh: bool) -> tuple[str, dict[str, Any]]:
        """Where to connect and how, for connections of another kind."""
        return secure(self._locate(fresh), self._ca_bundle), self._options

    @property
    def _options(self) -> dict[str, Any]:
        return {
            "autocommit": True,
            "prepare_threshold": None,
            "application_name": self._application,
            "connect_timeout": CONNECT_PATIENCE_SECONDS,
            # A server that vanished without a word (a failover, a dropped NAT entry) is noticed within half a minute.
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": 15_000,  # keepalives do not watch a statement that was sent and never acknowledged
        }

    def _connect_anew(self, refusal: psycopg.OperationalError) -> Connection:
        """The secret may have been rotated since it was read. What a refused log-in reads like differs from server to
        proxy, so the secret itself is asked: only another DSN is worth another try. The database gets a new password
        before the secret does: for that while, the next version is the one that opens it."""
        tried = {self._locate(False)}
        for locate in (lambda: self._locate(True), self._locate_next):
            dsn = locate()
            if dsn is None or dsn in tried:
                continue
            tried.add(dsn)
            try:
                return self._connect(dsn)
            except psycopg.OperationalError as error:
                refusal = error
        raise DatabaseUnavailable(_why(refusal)) from None

    def _connect(self, dsn: str) -> Connection:
        connection = OwnConnection.connect(secure(dsn, self._ca_bundle), **self._options)
        connection.tells_details, connection.owner = self._error_details, os.getpid()
        return connection


def has_gone(connection: Connection | psycopg.AsyncConnection[TupleRow]) -> bool:
    """An idle connection has nothing to read: what can be read is the server's farewell."""
    if connection.closed or connection.broken:
        return True
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN | select.POLLHUP | select.POLLERR)
    return bool(poll.poll(0))


def has_open_blocks(connection: Connection | psycopg.AsyncConnection[TupleRow]) -> bool:
    """Whether somebody has entered a transaction() of it that he has not left: the next one would be inside of that."""
    return bool(connection._num_transactions)


def _why(error: psycopg.OperationalError) -> str:
    """libpq's message holds host, port, user and reason, and never the password."""
    reason = " ".join(str(error).split())
    return f"the database can't be reached: {reason}; is it up, and do the function's network and secret lead to it?"
