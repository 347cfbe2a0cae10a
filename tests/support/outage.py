"""Take a database away for a while: sessions end, and nobody but the test may connect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

import psycopg


@contextmanager
def away(db: psycopg.Connection) -> Iterator[None]:
    """Take the database away for at least a second; it is back at the end."""
    [name] = db.execute("SELECT quote_ident(current_database())").fetchone() or ("",)
    back = Timer(1, lambda: db.execute(f"GRANT CONNECT ON DATABASE {name} TO PUBLIC".encode()))
    db.execute(f"REVOKE CONNECT ON DATABASE {name} FROM PUBLIC".encode())
    db.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    back.start()
    try:
        yield
    finally:
        back.join()
