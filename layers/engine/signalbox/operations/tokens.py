"""Create, list and revoke tokens of the HTTP API, by direct invocation alone: no token makes another one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pydantic import Field

from signalbox.access import tokens
from signalbox.access.caller import Role
from signalbox.invocation import Invocation, Resources
from signalbox.operate import audit
from signalbox.operate.audit import Actor
from signalbox.packs.payload import Payload

_YEARS = 10 * 366


class CreateToken(Payload):
    """Name the token after who will use it. Without `expires_days` it is good until it is revoked."""

    name: str = Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9._@-]+$")
    role: Role = Field(Role.VIEWER, strict=False)
    bound_to: str | None = Field(None, min_length=1, max_length=200)
    expires_days: int | None = Field(None, ge=1, le=_YEARS)
    replacing: bool = False
    by: str = Field("unnamed", min_length=1, max_length=200)


class ListTokens(Payload):
    """Take no params."""


class RevokeToken(Payload):
    name: str
    by: str = Field("unnamed", min_length=1, max_length=200)


def create_token(resources: Resources, params: CreateToken, invocation: Invocation) -> dict[str, Any]:
    """Return the new token, which is shown this once; `replacing` revokes one of the same name."""
    db = resources.database.connection()
    expires = None if params.expires_days is None else invocation.clock + timedelta(days=params.expires_days)
    with db.transaction():
        if params.replacing:
            tokens.revoke_any(db, params.name, by=params.by)
        made = tokens.create_token(
            db, params.name, params.role, tenant=params.bound_to, by=params.by, expires_at=expires
        )
        detail = {"role": str(params.role), "tenant": params.bound_to}
        audit.note(db, Actor(params.by), "token.create", kind="token", id_=params.name, detail=detail)
    return {"token": made}


def list_tokens(resources: Resources, _: ListTokens, __: Invocation) -> dict[str, Any]:
    return {"tokens": tokens.list_tokens(resources.database.connection())}


def revoke_token(resources: Resources, params: RevokeToken, _: Invocation) -> dict[str, Any]:
    db = resources.database.connection()
    with db.transaction():
        revoked = tokens.revoke_token(db, params.name, by=params.by)
        audit.note(db, Actor(params.by), "token.revoke", kind="token", id_=params.name)
    return {"token": revoked}
