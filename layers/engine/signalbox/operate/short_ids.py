"""Check ids, and complete those that an operator has shortened: the first eight characters or more of one id."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, Literal, LiteralString, TypeVar

from signalbox.errors import BackfillRefused, DeadLetterUnknown, IdRefused, JobUnknown, SignalboxError
from signalbox.packs.payload import Payload
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
Kind = Literal["job", "dead_letter", "backfill"]
IdFields = tuple[tuple[str, Kind], ...]
_FORM = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
_SHORTEST = 8
# For each kind of thing: its name, the command that lists it, the error for an id that nothing has, and its query.
_KINDS: Mapping[Kind, tuple[str, str, type[SignalboxError], LiteralString]] = {
    "job": ("job", "signalbox jobs", JobUnknown, SQL["find_job"]),
    "dead_letter": ("dead letter", "signalbox dead-letters", DeadLetterUnknown, SQL["find_dead_letter"]),
    "backfill": ("backfill", "signalbox backfill list", BackfillRefused, SQL["find_backfill"]),
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


def complete_ids(db: Connection, params: P) -> P:
    """Return the params with whole ids."""
    whole = {name: _complete(db, kind, getattr(params, name)) for name, kind in params.ID_FIELDS}
    return params.model_copy(update=whole)


def _complete(db: Connection, kind: Kind, value: str | list[str] | None) -> str | list[str] | None:
    if isinstance(value, list):
        return list(dict.fromkeys(complete_id(db, kind, id_) for id_ in value))
    return value and complete_id(db, kind, value)


def complete_id(db: Connection, kind: Kind, id_: str) -> str:
    """Return the one id that starts so. A whole id is returned as it is, whether anything has it or not."""
    if len(require_id(kind, id_, _SHORTEST)) == len(_FORM):
        return id_
    name, command, unknown, query = _KINDS[kind]
    rest = _FORM[len(id_) :]
    span = {"first": id_ + rest.replace("x", "0"), "last": id_ + rest.replace("x", "f")}
    found: list[str] = [row[0] for row in db.execute(query, span).fetchall()]
    if not found:
        raise unknown(f"no {name} has an id that starts with {id_}; `{command}` lists them")
    if len(found) > 1:
        others = " and of others" if len(found) > 2 else ""
        raise IdRefused(f"{id_} is the start of {found[0]}, of {found[1]}{others}: give more of the id")
    return found[0]
