"""Run a durable, migrated PostgreSQL for the time of the benchmarks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

from signalbox.engine_pack import ENGINE
from signalbox.migrate import migrations
from signalbox_laptop.postgres.embedded import EmbeddedPostgres


@contextmanager
def bench_database() -> Iterator[str]:
    with TemporaryDirectory(prefix="signalbox-bench-") as home:
        postgres = EmbeddedPostgres(Path(home))
        dsn = postgres.start()
        try:
            with psycopg.connect(dsn, autocommit=True) as connection:
                migrations.apply(connection, [ENGINE], "bench")
            yield dsn
        finally:
            postgres.stop()
