"""BILL-005: pause all active watchpoints of organisations whose payment failed a week ago, each night.

A watchpoint and its audit record are written together. None of our code ever resumes one: its owner does, once paid.
"""

from __future__ import annotations

from datetime import timedelta

from forecasts.settings import settings_of
from signalbox.batches.drain import drain
from signalbox.ledger.context import Context, Done
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
BATCH = 500


def enforce_payment_failure(context: Context) -> Done:
    """Items are the watchpoints paused."""
    before = context.now - timedelta(days=settings_of(context).payment_grace_days)
    values = {"now": context.now, "before": before, "size": BATCH}
    return drain(context.budget, lambda: context.db.execute(SQL["pause"], values).rowcount, size=BATCH)
