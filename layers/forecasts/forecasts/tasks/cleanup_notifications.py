"""Deletes notifications older than their retention, with their deliveries, once a night (MAINT-003).

Refuses to delete more than a share of the table in one run, unless told to.
"""

from __future__ import annotations

from datetime import timedelta

from forecasts.purging import purge
from forecasts.safety import CleanupParams, require_safe
from forecasts.settings import settings
from signalbox.context import Context, Done
from signalbox.queries import load_queries

SQL = load_queries(__file__)
# The deliveries of each are looked up and deleted one by one: a thousand take some 50 ms.
BATCH = 1000
Params = CleanupParams


def cleanup_notifications(context: Context) -> Done:
    """Items are the notifications deleted."""
    values = {"before": context.now - timedelta(days=settings().retention_notifications_days)}
    require_safe(context, "forecasts.notifications", SQL["weigh"], values)
    return purge(context, SQL["delete_old"], values, size=BATCH)
