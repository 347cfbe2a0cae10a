"""Make the databases that tests run on: copies of a migrated template, with log-ins as functions have them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from typing import Any, Literal

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from signalbox.engine_pack import ENGINE
from signalbox.migrate import migrations
from signalbox.migrate.grants import find_roles
from signalbox.migrate.job_types import keep_job_types
from signalbox.packs.pack import Pack

PASSWORD = "tests"  # noqa: S105 - of log-ins that only tests have
# Tables that tests make beside our schemas are open to the engine's roles, as a DBA would open tables for jobs.
OWN_TABLES = """
GRANT USAGE ON SCHEMA public TO signalbox_writer, signalbox_reader;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO signalbox_writer;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE ON SEQUENCES TO signalbox_writer;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO signalbox_reader;
"""
_LOOKS, _LOOK_AGAIN_SECONDS = 50, 0.002
_numbers = count()


@contextmanager
def new_database(server: str, template: str = "template1") -> Iterator[str]:
    """Yield the DSN of a fresh database, which is dropped at the end."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    # In memory, copying files is faster than copying through the log; on a disk it is slower.
    copied = sql.SQL("STRATEGY FILE_COPY" if "/dev/shm/" in server else "")  # noqa: S108 - looked for, not written to
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} {}").format(sql.Identifier(name), sql.Identifier(template), copied)
        )
        try:
            yield make_conninfo(server, dbname=name)
        finally:
            _end_sessions(connection, name)
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _end_sessions(connection: psycopg.Connection[Any], database: str) -> None:
    """Wait a while for a database's sessions to end: where one is left, DROP waits for a tenth of a second."""
    statement = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
    for _ in range(_LOOKS):
        if not connection.execute(statement, (database,)).fetchall():
            return
        time.sleep(_LOOK_AGAIN_SECONDS)


def make_schema(dsn: str, packs: Sequence[Pack]) -> None:
    """Migrate a fresh database, with roles as a deploy makes them."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        migrations.apply(connection, packs, "tests", find_roles(connection))
        keep_job_types(connection, packs, ())
        connection.execute(OWN_TABLES)


class Templates:
    """Keep migrated databases to copy, one for each set of packs: a copy takes a tenth of the migrations' time."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._made: dict[tuple[str, ...], str] = {}
        self._databases = ExitStack()

    def name_for(self, packs: Sequence[Pack]) -> str:
        key = tuple(pack.name for pack in packs)
        if key not in self._made:
            dsn = self._databases.enter_context(new_database(self._server))
            make_schema(dsn, [ENGINE, *packs])
            self._made[key] = str(conninfo_to_dict(dsn)["dbname"])
        return self._made[key]

    def close(self) -> None:
        self._databases.close()


def log_in(dsn: str, group: Literal["owner", "writer", "reader"]) -> str:
    """Return a DSN of the same database for a member of the group and of no other."""
    name = f"signalbox_tests_{group}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        statement = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {} IN ROLE {}")
        values = (sql.Identifier(name), sql.Literal(PASSWORD), sql.Identifier(f"signalbox_{group}"))
        # Roles belong to the server: another test may have made this one.
        with suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
            connection.execute(statement.format(*values))
    return make_conninfo(dsn, user=name, password=PASSWORD)
