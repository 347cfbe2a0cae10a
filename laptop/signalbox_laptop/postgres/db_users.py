"""Make the log-ins of the laptop's database: the migrator's, which owns all, one for functions, a read-only one.

They are made as a DBA makes them for a stack's database (docs/settings.md), so that on the laptop, too, no function can
do more than its role.
"""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from psycopg.conninfo import conninfo_to_dict

GROUPS = ("owner", "writer", "reader")
_MAKE = """
DO $$ BEGIN
    IF to_regrole('signalbox_owner') IS NULL THEN
        CREATE ROLE signalbox_owner NOLOGIN;
        CREATE ROLE signalbox_writer NOLOGIN;
        CREATE ROLE signalbox_reader NOLOGIN;
        CREATE ROLE functions LOGIN IN ROLE signalbox_writer;
        CREATE ROLE questions LOGIN IN ROLE signalbox_reader;
        ALTER ROLE questions SET default_transaction_read_only = on;
    END IF;
END $$;
-- What a person makes beside the schemas of the stack, jobs may import into and export.
GRANT USAGE ON SCHEMA public TO signalbox_writer, signalbox_reader;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO signalbox_writer;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE ON SEQUENCES TO signalbox_writer;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO signalbox_reader;
"""


@dataclass(frozen=True, slots=True)
class LogIns:
    """Name the DSN of each log-in."""

    owner: str
    writer: str
    reader: str


def make_log_ins(database: str) -> LogIns:
    """Make the log-ins of the database that this superuser's DSN names."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(_MAKE)
    return LogIns(database, _as("functions", database), _as("questions", database))


def _as(user: str, database: str) -> str:
    # Keep the URL form, which the functions want.
    name = conninfo_to_dict(database)["user"]
    return database.replace(f"//{name}@", f"//{user}@", 1)
