"""Deletes security events older than a week, once a night (MAINT-007), in batches that never hold a lock for long."""

from __future__ import annotations

from datetime import timedelta

from forecasts.page_walk import purge_pages
from forecasts.settings import settings
from signalbox.context import Context, Done
from signalbox.queries import load_queries

SQL = load_queries(__file__)


def cleanup_security_events(context: Context) -> Done:
    """Items are the events deleted."""
    values = {"before": context.now - timedelta(days=settings().retention_security_events_days)}
    return purge_pages(context, SQL, values)
