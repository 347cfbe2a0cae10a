"""Log-ins of the tests' server, members of one group each: what functions are, in the place of the superuser."""

from __future__ import annotations

from contextlib import suppress
from typing import Literal

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

PASSWORD = "tests"


def log_in(dsn: str, group: Literal["owner", "writer", "reader"]) -> str:
    """A DSN of the same database for a member of the group and of no other."""
    name = f"signalbox_tests_{group}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        statement = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {} IN ROLE {}")
        values = (sql.Identifier(name), sql.Literal(PASSWORD), sql.Identifier(f"signalbox_{group}"))
        # Roles are the server's, and so another test's.
        with suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
            connection.execute(statement.format(*values))
    return make_conninfo(dsn, user=name, password=PASSWORD)
