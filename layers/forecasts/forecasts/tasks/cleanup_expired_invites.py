"""Deletes invites that expired without being accepted, once a night (MAINT-006). Accepted ones stay.

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
BATCH = 1000
Params = CleanupParams


def cleanup_expired_invites(context: Context) -> Done:
    """Items are the invites deleted."""
    values = {"before": context.now - timedelta(days=settings().retention_invites_days)}
    require_safe(context, "forecasts.invites", SQL["weigh"], values)
    return purge(context, SQL["delete_expired"], values, size=BATCH)
