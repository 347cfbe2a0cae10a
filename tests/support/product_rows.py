"""Insert rows into the tables of packs, as their products would."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb


def insert(db: psycopg.Connection[Any], schema: str, table: str, **fields: Any) -> str:
    """Insert one row; return its id, or "" for a table without one."""
    values = [Jsonb(value) if isinstance(value, dict) else value for value in fields.values()]
    statement = sql.SQL(
        "INSERT INTO {} AS made ({}) VALUES ({}) RETURNING coalesce(to_jsonb(made) ->> 'id', '')"
    ).format(
        sql.Identifier(schema, table),
        sql.SQL(", ").join(map(sql.Identifier, fields)),
        sql.SQL(", ").join(sql.Placeholder() * len(fields)),
    )
    row = db.execute(statement, values).fetchone()
    assert row is not None
    return str(row[0])
