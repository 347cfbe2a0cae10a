"""BILL-011: pause watchpoints beyond an organisation's plan after two weeks of overage, each night.

The newest active watchpoints are paused; the oldest stay, as many as the plan has. A watchpoint and its audit record
are written together. None of our code ever resumes one: its owner does.
"""

from __future__ import annotations

from datetime import timedelta

from forecasts.settings import settings_of
from signalbox.batches.drain import drain
from signalbox.ledger.context import Context, Done
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
BATCH = 500


def enforce_overage(context: Context) -> Done:
    """Items are the watchpoints paused."""
    before = context.now - timedelta(days=settings_of(context).overage_grace_days)
    values = {"now": context.now, "before": before, "size": BATCH}
    return drain(context.budget, lambda: context.db.execute(SQL["pause_newest"], values).rowcount, size=BATCH)
