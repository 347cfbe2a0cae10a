"""Make acts meet at a lock, or let sessions fail that wait for one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import psycopg
from psycopg import sql

First = TypeVar("First")
Second = TypeVar("Second")
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


def wait_for_no_lock(db: psycopg.Connection) -> None:
    """Let every session of this database fail at once, from now on, if it would wait for a lock."""
    db.execute(sql.SQL("ALTER DATABASE {} SET lock_timeout = '1s'").format(sql.Identifier(db.info.dbname)))


def wait_until_blocked(db: psycopg.Connection[Any], *acts: Future[Any]) -> None:
    """Return once a session waits for a lock; with `acts`, once each of them does or has ended."""
    for _ in range(100_000):
        db.execute("SELECT pg_stat_clear_snapshot()")
        [waiting] = db.execute(WAITING).fetchone() or (0,)
        if waiting + sum(act.done() for act in acts) >= max(1, len(acts)):
            return
    raise AssertionError("somebody neither waits nor ends")


def overlapping(
    db: psycopg.Connection[Any], act: Callable[[], First], *then: Callable[[], Second]
) -> tuple[First, list[Second]]:
    """Act in a transaction on `db`, which commits once each `then`, begun one after the other in threads of their own,
    waits for a lock or has ended."""
    with ThreadPoolExecutor(len(then)) as threads:
        with db.transaction():
            first, acts = act(), list[Future[Second]]()
            for do in then:
                acts.append(threads.submit(do))
                wait_until_blocked(db, *acts)
        return first, [one.result() for one in acts]
