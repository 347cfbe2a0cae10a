"""Delete watchpoints that were archived long ago, with their notifications, once a night (MAINT-002).

Notifications go first, in batches of their own: a watchpoint may have many. The task refuses to delete more than a
share of the table in one run, unless told to.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

from forecasts.settings import settings_of
from signalbox.batches.drain import drain
from signalbox.batches.retention import Retention
from signalbox.batches.safety_share import CleanupParams, allowance
from signalbox.ledger.context import Context, Done
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
WATCHPOINTS = Retention("forecasts.watchpoints", age="archived_at", only="status = 'archived'")
PAGE = 500
NOTIFICATIONS = 1000
Params = CleanupParams


def cleanup_archived_watchpoints(context: Context) -> Done:
    """Items are the watchpoints deleted."""
    values = {"before": context.now - timedelta(days=settings_of(context).retention_archived_watchpoints_days)}
    most = allowance(context, settings_of(context).cleanup_watchpoints_batch)
    settings_of(context).share.require(context, WATCHPOINTS, values["before"], most)
    deleted = 0
    for page in _pages(context, values):
        if deleted == most:
            limit = settings_of(context).cleanup_watchpoints_batch
            return Done(deleted, reason=f"a run deletes at most {limit}; the next run continues")
        these = {"ids": page[: most - deleted], **values}
        if context.budget.spent or not _delete_notifications(context, these):
            return Done(deleted, more=True)
        deleted += context.db.execute(SQL["delete_watchpoints"], these).rowcount
    return Done(deleted)


def _pages(context: Context, values: dict[str, Any]) -> Iterator[list[UUID]]:
    """Yield pages of ids, the longest archived first."""
    after: dict[str, Any] = {"after": "-infinity", "after_id": UUID(int=0)}
    while page := context.db.execute(SQL["list_due"], {**values, **after, "page": PAGE}).fetchall():
        yield [row[0] for row in page]
        after = {"after_id": page[-1][0], "after": page[-1][1]}


def _delete_notifications(context: Context, these: dict[str, Any]) -> bool:
    """Delete the notifications; return False if the budget ended first."""
    values = {**these, "batch": NOTIFICATIONS}
    statement = SQL["delete_notifications"]
    return not drain(context.budget, lambda: context.db.execute(statement, values).rowcount, size=NOTIFICATIONS).more
