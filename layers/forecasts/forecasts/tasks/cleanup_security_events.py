"""Delete security events older than a week, once a night (MAINT-007), in batches that never hold a lock for long."""

from __future__ import annotations

from datetime import timedelta

from forecasts.settings import settings_of
from signalbox.batches.retention import Retention
from signalbox.ledger.context import Context, Done

EVENTS = Retention("forecasts.security_events", age="attempted_at", batch=5000, by_pages=True)


def cleanup_security_events(context: Context) -> Done:
    """Items are the events deleted."""
    return EVENTS.delete(context, context.now - timedelta(days=settings_of(context).retention_security_events_days))
