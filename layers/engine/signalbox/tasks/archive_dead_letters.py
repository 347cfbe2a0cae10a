"""Move dead letters that were closed long ago to the audit log, once a night, in batches.

Closed are the resolved, the ignored and the redriven ones. Open ones stay until somebody has triaged them.
"""

from __future__ import annotations

from datetime import timedelta

from signalbox.batches.drain import drain
from signalbox.ledger.context import Context, Done
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
BATCH = 500


def archive_dead_letters(context: Context) -> Done:
    """Move the dead letters. Items are the dead letters moved."""
    retention = timedelta(days=context.settings.dead_letter_retention_days)
    values = {"before": context.now - retention, "days": retention.days, "batch": BATCH}
    return drain(context.budget, lambda: context.db.execute(SQL["archive"], values).rowcount, size=BATCH)
