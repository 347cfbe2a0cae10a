"""Delete invites that expired without being accepted, once a night (MAINT-006). Accepted ones stay.

The task refuses to delete more than a share of the table in one run, unless told to.
"""

from __future__ import annotations

from datetime import timedelta

from forecasts.settings import settings_of
from signalbox.batches.retention import Retention
from signalbox.batches.safety_share import CleanupParams
from signalbox.ledger.context import Context, Done

INVITES = Retention("forecasts.invites", age="expires_at", only="accepted_at IS NULL")
Params = CleanupParams


def cleanup_expired_invites(context: Context) -> Done:
    """Items are the invites deleted."""
    before = context.now - timedelta(days=settings_of(context).retention_invites_days)
    settings_of(context).share.require(context, INVITES, before)
    return INVITES.delete(context, before)
