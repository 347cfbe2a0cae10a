"""Begin, find and end the sessions of browsers that log in with a token.

A session's secret is 256 random bits, which the browser keeps in a cookie and the database as a hash: nobody can make
one up. A session ends when it expires, with a logout, or with its token.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from datetime import timedelta

from signalbox.access.caller import Caller, Role
from signalbox.access.tokens import find_caller, hash_of
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
LASTS = timedelta(hours=12)


@dataclass(frozen=True, slots=True)
class Session:
    """Describe the session of one browser."""

    secret: str = field(repr=False)
    caller: Caller

    @property
    def form_key(self) -> str:
        """Return what each form of this session holds, and no other site can know."""
        return hmac.new(self.secret.encode(), b"form", hashlib.sha256).hexdigest()


def begin_session(db: Connection, token: str) -> str:
    """Return the secret of a new session, or refuse a token that is unknown, expired or revoked."""
    find_caller(db, token)
    secret = secrets.token_urlsafe(32)
    db.execute(SQL["begin"], {"secret_hash": hash_of(secret), "token_hash": hash_of(token), "lasts": LASTS})
    return secret


def find_session(db: Connection, secret: str) -> Session | None:
    found = db.execute(SQL["find"], {"secret_hash": hash_of(secret)}).fetchone()
    return Session(secret, Caller(found[0], Role(found[1]), found[2])) if found else None


def end_session(db: Connection, secret: str) -> None:
    db.execute(SQL["end"], {"secret_hash": hash_of(secret)})
