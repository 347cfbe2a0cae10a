"""Start the next slots of each running backfill, once a minute, and take back those whose invocation got lost."""

from __future__ import annotations

from signalbox.ledger.backfill_driver import advance
from signalbox.ledger.context import Context, Done


def advance_backfills(context: Context) -> Done:
    """Start the slots that are due. Items are the slots that were started."""
    return Done(advance(context.db, context.invoker, context.enabled_tasks, context.budget, context.log))
