"""Check ids, and complete those that an operator has shortened: the first eight characters or more of one id."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, LiteralString, TypeVar

from signalbox.errors import (
    BackfillUnknown,
    BulkActionUnknown,
    DeadLetterUnknown,
    IdRefused,
    JobUnknown,
    SignalboxError,
)
from signalbox.packs.payload import Payload
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
Kind = Literal["job", "dead_letter", "backfill", "bulk_action"]
IdFields = tuple[tuple[str, Kind], ...]
_FORM = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
_SHORTEST = 8
# For each kind of thing: its name, the command that lists it, the error for an id that nothing has, and its query.
_KINDS: Mapping[Kind, tuple[str, str, type[SignalboxError], LiteralString]] = {
    "job": ("job", "signalbox jobs", JobUnknown, SQL["find_jobs"]),
    "dead_letter": ("dead letter", "signalbox dead-letters", DeadLetterUnknown, SQL["find_dead_letters"]),
    "backfill": ("backfill", "signalbox backfill list", BackfillUnknown, SQL["find_backfills"]),
    "bulk_action": ("bulk action", "signalbox bulk-actions", BulkActionUnknown, SQL["find_bulk_actions"]),
}


class IdParams(Payload):
    """Let the fields of an operation's params that ID_FIELDS lists hold the start of an id in place of the whole."""

    ID_FIELDS: ClassVar[IdFields] = ()


P = TypeVar("P", bound=IdParams)


def require_id(kind: Kind, id_: str, shortest: int = len(_FORM)) -> str:
    """Return the id, or raise an error that says what ids look like. `shortest` allows the start of one."""
    formed = shortest <= len(id_) <= len(_FORM) and re.fullmatch(re.sub("x", "[0-9a-f]", _FORM[: len(id_)]), id_)
    if not formed:
        name, command, *_ = _KINDS[kind]
        raise IdRefused(f"'{id_[:60]}' is not the id of a {name}, which is a UUID; `{command}` lists them")
    return id_


def complete_ids(db: Connection, params: P, tenant: str | None = None) -> P:
    """Return the params with whole ids. With a tenant, the ids of other tenants are unknown."""
    whole: dict[str, Any] = {}
    for name, kind in params.ID_FIELDS:
        given = getattr(params, name)
        if isinstance(given, str):
            [whole[name]] = whole_ids(db, kind, [given], tenant)
        elif given is not None:
            whole[name] = list(dict.fromkeys(whole_ids(db, kind, given, tenant)))
    return params.model_copy(update=whole)


def whole_ids(db: Connection, kind: Kind, ids: Sequence[str], tenant: str | None = None) -> list[str]:
    """Return for each the one id that starts so. Without a tenant, whole ids are not looked up."""
    if tenant is None and all(len(require_id(kind, id_, _SHORTEST)) == len(_FORM) for id_ in ids):
        return list(ids)
    spans = {
        f"{end}s": [require_id(kind, id_, _SHORTEST) + _FORM[len(id_) :].replace("x", digit) for id_ in ids]
        for end, digit in (("first", "0"), ("last", "f"))
    }
    found = db.execute(_KINDS[kind][3], {**spans, "tenant": tenant}).fetchall()
    return [_only(kind, id_, matches) for id_, (matches,) in zip(ids, found, strict=True)]


def _only(kind: Kind, id_: str, matches: Sequence[str]) -> str:
    name, command, unknown, _ = _KINDS[kind]
    if not matches:
        how = "the id" if len(id_) == len(_FORM) else "an id that starts with"
        raise unknown(f"no {name} has {how} {id_}; `{command}` lists them")
    if len(matches) > 1:
        others = " and of others" if len(matches) > 2 else ""
        raise IdRefused(f"{id_} is the start of {matches[0]}, of {matches[1]}{others}: give more of the id")
    return matches[0]
