"""Own a database connection of an execution environment: opened when first needed, checked, reopened when gone.

A worker has one for its driver, and a few more that its jobs borrow. They hold no session state that a proxy would have
to pin: no prepared statements, no session advisory locks.
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

# A warm environment may outlive a deploy, so it checks again whether the schema still serves its code.
INSPECT_AFTER_SECONDS = 60.0
CANCEL_PATIENCE_SECONDS = 5.0
WAIT_INTERVAL = 0.1  # psycopg's own interval, after which it notices signals
# An Aurora that has paused takes some 15 seconds to wake up, and 30 after a day.
CONNECT_PATIENCE_SECONDS = 40
UNDER_WAY = (TransactionStatus.ACTIVE, TransactionStatus.INTRANS, TransactionStatus.INERROR)


class OwnConnection(psycopg.Connection[TupleRow]):
    """Commit each statement at once, or with the transaction it is in. Refuse commit() and rollback().

    They would end a transaction early, and keep a job's effects without its end. Autocommit stays on: work that waited
    for a commit() would lose the ends of a whole batch.
    """

    tells_details = False  # whether its errors quote rows
    owner = 0  # the process that opened it

    def wait(self, gen: PQGen[RV], interval: float = WAIT_INTERVAL, timeout: float | None = None) -> RV:
        """Run a statement. Every statement passes here, and so does every error of the server."""
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
    """Open a transaction whose last statement may contain the COMMIT, which saves a round trip.

    The server rolls it back after this many seconds without a statement: a worker that is frozen or gone keeps no
    locks.
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
    """Roll back. If that fails, the connection is broken and the server does it; the earlier error is what counts."""
    with suppress(psycopg.Error):
        if db.info.transaction_status != TransactionStatus.IDLE:
            db.execute("ROLLBACK")


class Database:
    """Own the connection. `locate(fresh)` returns the DSN, and re-reads the secret if `fresh`.

    `locate_next` returns the pending DSN during a rotation.
    """

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
        """Return the connection, alive as far as one can see without a round trip."""
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
        """Return whether a statement or a transaction is running on it."""
        return self._connection is not None and self._connection.pgconn.transaction_status in UNDER_WAY

    def abandon(self) -> None:
        """Cancel and close a connection whose work was given up.

        The server would otherwise finish an interrupted statement, and keep an unended transaction open.
        """
        if self._connection is not None and self.is_busy:
            with suppress(psycopg.Error):
                self._connection.cancel_safe(timeout=CANCEL_PATIENCE_SECONDS)
            self.close()

    def hand_back(self) -> None:
        """Reset session settings and open blocks so that they do not leak to the next user of the connection."""
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
            connection = self._reconnect(error)
        try:
            self._look(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def options(self, *, fresh: bool) -> tuple[str, dict[str, Any]]:
        """Return where and how to connect, for connections of another kind."""
        return secure(self._locate(fresh), self._ca_bundle), self._options

    @property
    def _options(self) -> dict[str, Any]:
        return {
            "autocommit": True,
            "prepare_threshold": None,
            "application_name": self._application,
            "connect_timeout": CONNECT_PATIENCE_SECONDS,
            # A server that vanished silently (a failover, a dropped NAT entry) is noticed within half a minute.
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": 15_000,  # keepalives do not watch a statement that was sent and never acknowledged
        }

    def _reconnect(self, refusal: psycopg.OperationalError) -> Connection:
        """Try again with another DSN: the secret may have been rotated since it was read.

        A refused log-in looks different from server to proxy, so the secret itself is read: only another DSN is worth
        another try. The database gets a new password before the secret does: until then, only the next version works.
        """
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
    """Return whether the server has closed an idle connection: it has nothing else to read."""
    if connection.closed or connection.broken:
        return True
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN | select.POLLHUP | select.POLLERR)
    return bool(poll.poll(0))


def has_open_blocks(connection: Connection | psycopg.AsyncConnection[TupleRow]) -> bool:
    """Return whether a transaction() block was entered and not left: the next one would be inside it."""
    return bool(connection._num_transactions)


def _why(error: psycopg.OperationalError) -> str:
    """Return the reason. libpq's message holds host, port, user and reason, and never the password."""
    reason = " ".join(str(error).split())
    return f"the database can't be reached: {reason}; is it up, and do the function's network and secret lead to it?"
