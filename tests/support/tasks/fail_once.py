"""Fail while the table `troubles` has a row."""

from __future__ import annotations

from signalbox.ledger.context import Context, Done


class Trouble(Exception):
    """Stand for the error that the task raises."""


def fail_once(context: Context) -> Done:
    with context.db.transaction():
        context.db.execute(
            "INSERT INTO effects (task, slot, now) VALUES (%s, %s, %s)", (context.task, context.slot, context.now)
        )
        if context.db.execute("SELECT 1 FROM troubles").fetchone():
            raise Trouble("the table 'troubles' has a row")
    return Done(items=1)
