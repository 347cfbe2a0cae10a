"""Show a crash of a worker or its database as seen from outside: the session ends, nothing is committed."""

from __future__ import annotations

import psycopg


def lose_session(dsn: str) -> None:
    """End every session of the engine's in this database, and wait until they have ended."""
    with psycopg.connect(dsn, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE application_name = 'signalbox' AND datname = current_database()"
        )
