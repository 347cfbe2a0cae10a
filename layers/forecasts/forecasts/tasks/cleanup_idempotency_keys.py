"""Delete expired idempotency keys, once a night (SCHED-006), in batches that never hold a lock for long."""

from __future__ import annotations

from signalbox.batches.retention import Retention
from signalbox.ledger.context import Context, Done

KEYS = Retention("forecasts.idempotency_keys", age="expires_at", batch=5000, by_pages=True)


def cleanup_idempotency_keys(context: Context) -> Done:
    """Items are the keys deleted."""
    return KEYS.delete(context, context.now)
