"""Write a row, and stay at work until the rest of a crowd has been turned away."""

from __future__ import annotations

from signalbox.ledger.context import Context, Done

CROWD = 50
_TURNED_AWAY = "SELECT count(*) FROM signalbox.job_history WHERE job_type = 'wait_for_crowd' AND status = 'skipped'"


def wait_for_crowd(context: Context) -> Done:
    context.db.execute(
        "INSERT INTO effects (task, slot, now) VALUES (%s, %s, %s)", (context.task, context.slot, context.now)
    )
    while context.db.execute(_TURNED_AWAY).fetchone() != (CROWD - 1,) and not context.budget.spent:
        pass
    return Done(items=1)
