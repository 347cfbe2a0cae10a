"""Commit one row, write another, and stop for good before the commit; or do both, once `troubles` is empty."""

from __future__ import annotations

import threading

from signalbox.ledger.context import Context, Done


def stop_halfway(context: Context) -> Done:
    _note(context, "first")
    with context.db.transaction():
        _note(context, "second")
        if context.db.execute("SELECT 1 FROM troubles").fetchone():
            threading.Event().wait()
    return Done(items=2)


stop_alone = stop_halfway


def _note(context: Context, worker: str) -> None:
    context.db.execute(
        "INSERT INTO effects (task, slot, now, worker_id) SELECT %s, %s, %s, %s "
        "WHERE NOT EXISTS (SELECT FROM effects WHERE worker_id = %s)",
        (context.task, context.slot, context.now, worker, worker),
    )
