"""Sessions that wait for no lock: what should pass one by fails at once, where it would wait for the test itself."""

from __future__ import annotations

import psycopg
from psycopg import sql


def wait_for_no_lock(db: psycopg.Connection) -> None:
    """For every session of this database from now on."""
    db.execute(sql.SQL("ALTER DATABASE {} SET lock_timeout = '1s'").format(sql.Identifier(db.info.dbname)))
