"""What must not be lost is tried again while the database is away."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from signalbox.postgres.connection import Connection, Database
from signalbox.postgres.retry import through_restart
from tests.support.lost_session import lose_session


@pytest.fixture
def database(dsn: str) -> Iterator[Database]:
    database = Database(lambda _: dsn)
    yield database
    database.close()


def test_what_breaks_once_is_tried_again_at_once(database: Database, dsn: str) -> None:
    """Even where there is no time left for more."""
    tries: list[int] = []

    def act(db: Connection) -> int:
        tries.append(1)
        if len(tries) == 1:
            lose_session(dsn)
        return len(db.execute("SELECT 1").fetchall())

    assert (through_restart(database, act, seconds=-1, pause=60), len(tries)) == (1, 2)


def test_a_server_that_has_become_a_replica_is_left(database: Database) -> None:
    database.connection().execute("SET default_transaction_read_only = on")
    through_restart(database, lambda db: db.execute("CREATE TABLE written ()"))
    assert database.connection().execute("SELECT count(*) FROM written").fetchone() == (0,)


def test_what_goes_on_failing_is_raised(database: Database) -> None:
    tries: list[int] = []

    def act(_: Connection) -> None:
        tries.append(1)
        raise psycopg.OperationalError("away")

    with pytest.raises(psycopg.OperationalError, match="away"):
        through_restart(database, act, seconds=0, pause=0)
    assert len(tries) == 2


def test_an_error_that_the_caller_knows_is_not_tried_again(database: Database) -> None:
    tries: list[int] = []

    def act(_: Connection) -> None:
        tries.append(1)
        raise psycopg.errors.LockNotAvailable

    with pytest.raises(psycopg.errors.LockNotAvailable):
        through_restart(database, act, unless=(psycopg.errors.LockNotAvailable,))
    assert len(tries) == 1
