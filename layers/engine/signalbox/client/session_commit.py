"""Call a function after the commit of a SQLAlchemy session, and not after a rollback.

A session reports the release of a savepoint like a commit, and reports nothing when it is closed without one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Act = Callable[[], object]
_KEY = "signalbox"  # in the session's info: the acts, each with the transaction or savepoint that it belongs to


def act_after_commit(session: Any, act: Act) -> None:
    """Act after the commit of the session's outermost transaction, unless the savepoint that is open is rolled back."""
    from sqlalchemy import event

    if _KEY not in session.info:
        session.info[_KEY] = []
        event.listen(session, "after_commit", _act)
        event.listen(session, "after_soft_rollback", _forget)
        event.listen(session, "after_transaction_end", _end)
    session.info[_KEY].append((session.get_nested_transaction() or session.get_transaction(), act))


def _act(session: Any) -> None:
    if session.in_nested_transaction():
        return
    acts, session.info[_KEY] = session.info[_KEY], []
    for _, act in acts:
        act()


def _forget(session: Any, ended: Any) -> None:
    session.info[_KEY] = [(part, act) for part, act in session.info[_KEY] if not _is_within(part, ended)]


def _end(session: Any, ended: Any) -> None:
    if ended.parent is None:
        session.info[_KEY] = []


def _is_within(part: Any, whole: Any) -> bool:
    while part is not None and part is not whole:
        part = part.parent
    return part is not None
