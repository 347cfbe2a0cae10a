"""Deletes idempotency keys that have expired, once a night (SCHED-006), in batches that never hold a lock for long."""

from __future__ import annotations

from forecasts.page_walk import purge_pages
from signalbox.context import Context, Done
from signalbox.queries import load_queries

SQL = load_queries(__file__)


def cleanup_idempotency_keys(context: Context) -> Done:
    """Items are the keys deleted."""
    return purge_pages(context, SQL, {"before": context.now})
