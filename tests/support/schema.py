"""Makes the schema that tests run on."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from signalbox.migrate import migrations
from signalbox.migrate.grants import find_roles
from signalbox.migrate.job_types import keep_job_types
from signalbox.packs.pack import Pack

# What tests make beside our schemas is open to the engine's roles, as a DBA would open what jobs are to use.
OWN_TABLES = """
GRANT USAGE ON SCHEMA public TO signalbox_writer, signalbox_reader;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO signalbox_writer;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE ON SEQUENCES TO signalbox_writer;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO signalbox_reader;
"""


def make_schema(dsn: str, packs: Sequence[Pack]) -> None:
    """Migrate a fresh database, with roles as a deploy makes them."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        migrations.apply(connection, packs, "tests", find_roles(connection))
        keep_job_types(connection, packs, ())
        connection.execute(OWN_TABLES)
