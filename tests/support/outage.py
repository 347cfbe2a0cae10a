"""Take a database away for a while: sessions end, and nobody but the test may connect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Timer

import psycopg


@contextmanager
def away(db: psycopg.Connection) -> Iterator[None]:
    """Take the database away until the end of the block."""
    [name] = db.execute("SELECT quote_ident(current_database())").fetchone() or ("",)
    db.execute(f"REVOKE CONNECT ON DATABASE {name} FROM PUBLIC".encode())
    db.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    try:
        yield
    finally:
        db.execute(f"GRANT CONNECT ON DATABASE {name} TO PUBLIC".encode())


@contextmanager
def briefly_away(db: psycopg.Connection) -> Iterator[None]:
    """Take the database away, and bring it back a second later, in the block or at its end."""
    with ExitStack() as outage:
        outage.enter_context(away(db))
        back = Timer(1, outage.close)
        back.start()
        try:
            yield
        finally:
            back.join()
