"""Starts the next slots of each running backfill, once a minute, and takes back those whose invocation got lost."""

from __future__ import annotations

from signalbox.ledger.backfill_driver import advance
from signalbox.ledger.context import Context, Done


def advance_backfills(context: Context) -> Done:
    """Items are the slots that were started."""
    return Done(advance(context.db, context.invoker, context.enabled_tasks, context.budget, context.log))
