"""Describe an exception for the ledger: its type, its message, and where in our code it was raised.

PostgreSQL's errors quote the row that failed in their DETAIL and CONTEXT. Rows, logs and notifications get the primary
message, the SQLSTATE and the constraint's name instead, unless the stack's setting asks for the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from traceback import extract_tb
from typing import Any

import psycopg

from signalbox.postgres.pg_text import clean

LONGEST_MESSAGE = 2000


def describe(error: BaseException) -> dict[str, Any]:
    """Return a value for a jsonb column; a long message is cut."""
    described: dict[str, Any] = {"type": type(error).__name__, "message": clean(_words_of(error)[:LONGEST_MESSAGE])}
    frames = extract_tb(error.__traceback__)
    if frames:
        last = frames[-1]
        described["at"] = f"{last.filename.rsplit('/', 1)[-1]}:{last.lineno} in {last.name}"
    return described


def conceal(error: BaseException) -> None:
    """Take the server's details out of the words of an error, of its causes, and of its contexts."""
    for one in _chain(error):
        if isinstance(one, psycopg.Error):
            one.args = (without_details(one),)


def without_details(error: psycopg.Error) -> str:
    """Return the primary message, SQLSTATE and constraint of a server's error, and the words of any other."""
    if error.diag.message_primary is None or error.sqlstate is None:
        return str(error)
    named = error.diag.constraint_name
    return f"{error.diag.message_primary} ({error.sqlstate}{f', {named}' if named else ''})"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Return the error and all errors that a traceback shows with it."""
    ahead: list[BaseException | None] = [error]
    seen: set[int] = set()
    while ahead:
        one = ahead.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        ahead += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            ahead += one.exceptions


def _words_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as fault:  # the error's own code failed, which must not hide what else is known
        return f"(what it says can't be read: {type(fault).__name__})"
