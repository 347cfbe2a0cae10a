"""Create, find, list and revoke the bearer tokens of the HTTP API.

A token is 256 random bits, so that its plain SHA-256 is enough to store. It is shown once, when it is created.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import dict_row

from signalbox.access.caller import Caller, Role
from signalbox.errors import TokenRefused, Unauthenticated
from signalbox.postgres.connection import Connection
from signalbox.postgres.json_rows import json_row
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
PREFIX = "sbx_"  # by which scanners of repositories can find a token that was committed


def create_token(
    db: Connection, name: str, role: Role, *, tenant: str | None, by: str, expires_at: datetime | None
) -> dict[str, Any]:
    """Store a new token and return its row with the token itself, which nobody can read again."""
    token = PREFIX + secrets.token_urlsafe(32)
    values = {"name": name, "role": str(role), "tenant": tenant, "by": by, "expires_at": expires_at}
    try:
        [row] = _rows(db, "create", {**values, "hash": hash_of(token)})
    except psycopg.errors.UniqueViolation:
        raise TokenRefused(f"a token named '{name}' is in use: revoke it first, or choose another name") from None
    return row | {"token": token}


def find_caller(db: Connection, token: str) -> Caller:
    """Return whose token this is, or refuse one that is unknown, expired or revoked."""
    found = db.execute(SQL["find"], {"hash": hash_of(token)}).fetchone() if token.startswith(PREFIX) else None
    if found is None:
        raise Unauthenticated("this token is unknown, expired or revoked; `signalbox tokens create` makes one")
    name, role, tenant = found
    return Caller(name, Role(role), tenant)


def list_tokens(db: Connection) -> list[dict[str, Any]]:
    return _rows(db, "list", {})


def revoke_any(db: Connection, name: str, *, by: str) -> None:
    """End the use of the token of this name, if there is one."""
    db.execute(SQL["revoke"], {"name": name, "by": by})


def revoke_token(db: Connection, name: str, *, by: str) -> dict[str, Any]:
    """End the use of the token of this name."""
    found = _rows(db, "revoke", {"name": name, "by": by})
    if not found:
        raise TokenRefused(f"no token named '{name}' is in use; `signalbox tokens` lists them")
    return found[0]


def hash_of(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()


def _rows(db: Connection, query: str, values: dict[str, Any]) -> list[dict[str, Any]]:
    with db.cursor(row_factory=dict_row) as cursor:
        return [json_row(row) for row in cursor.execute(SQL[query], values).fetchall()]
