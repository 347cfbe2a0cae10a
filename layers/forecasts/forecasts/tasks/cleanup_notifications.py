"""Delete notifications older than their retention, with their deliveries, once a night (MAINT-003).

The task refuses to delete more than a share of the table in one run, unless told to.
"""

from __future__ import annotations

from datetime import timedelta

from forecasts.settings import settings_of
from signalbox.batches.retention import Retention
from signalbox.batches.safety_share import CleanupParams
from signalbox.ledger.context import Context, Done

# The cascade looks up and deletes each notification's deliveries one by one: a thousand take some 50 ms.
NOTIFICATIONS = Retention("forecasts.notifications", age="created_at", batch=1000)
Params = CleanupParams


def cleanup_notifications(context: Context) -> Done:
    """Items are the notifications deleted."""
    before = context.now - timedelta(days=settings_of(context).retention_notifications_days)
    settings_of(context).share.require(context, NOTIFICATIONS, before)
    return NOTIFICATIONS.delete(context, before)
