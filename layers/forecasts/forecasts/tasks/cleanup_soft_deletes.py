"""Delete organisations for good, a month after they were deleted (MAINT-005): at most 50 a run, each with a trace.

Their rows in other tables go first, in batches of their own, since one DELETE of a large organisation would cascade for
minutes. An organisation that is restored meanwhile keeps what is left of it. The task refuses to delete more than a
share of all organisations in one run, unless told to.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg

from forecasts.settings import settings_of
from signalbox.batches.drain import drain
from signalbox.batches.retention import Retention
from signalbox.batches.safety_share import CleanupParams, allowance
from signalbox.ledger.context import Context, Done
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
# Rows that have rows of their own go in smaller batches. The rest is few enough to go with the organisation.
BELONGINGS = {
    "delete_notifications": 1000,
    "delete_watchpoints": 1000,
    "delete_idempotency_keys": 5000,
    "delete_usage": 5000,
}
ORGANIZATIONS = Retention("forecasts.organizations", age="deleted_at")
PAGE = 50
Params = CleanupParams


def cleanup_soft_deletes(context: Context) -> Done:
    """Items are the organisations deleted."""
    values = {"before": context.now - timedelta(days=settings_of(context).retention_deleted_organizations_days)}
    most = allowance(context, settings_of(context).cleanup_batch)
    settings_of(context).share.require(context, ORGANIZATIONS, values["before"], most)
    deleted = kept = 0
    for organization_id in _due(context, values):
        if deleted == most:
            return Done(
                deleted,
                reason=f"a run deletes at most {settings_of(context).cleanup_batch}; the next run continues",
            )
        one = {"id": organization_id, **values}
        try:
            if not _delete_belongings(context, one):
                return Done(deleted, more=True)
            gone = _delete(context, one)
        except (psycopg.IntegrityError, psycopg.errors.LockNotAvailable) as error:
            gone = _keep(context, organization_id, error)
        deleted += gone
        kept += not gone
    return Done(deleted, reason=f"{kept} were not deleted; the log says why, for each" if kept else None)


def _due(context: Context, values: dict[str, Any]) -> Iterator[UUID]:
    """Yield the longest deleted first. One that can't be deleted does not hold up the others."""
    after: dict[str, Any] = {"after": "-infinity", "after_id": UUID(int=0)}
    while page := context.db.execute(SQL["list_due"], {**values, **after, "page": PAGE}).fetchall():
        yield from (row[0] for row in page)
        after = {"after_id": page[-1][0], "after": page[-1][1]}


def _delete_belongings(context: Context, one: dict[str, Any]) -> bool:
    """Delete the organisation's rows; return False if the budget ended first."""
    for query, size in BELONGINGS.items():
        values = {**one, "batch": size}
        statement = SQL[query]
        done = drain(context.budget, lambda: context.db.execute(statement, values).rowcount, size=size)  # noqa: B023
        if done.more:
            return False
    return True


def _delete(context: Context, one: dict[str, Any]) -> bool:
    extra = {"organization_id": str(one["id"])}
    values = {**one, "now": context.now}
    with context.db.transaction():
        context.db.execute(SQL["limit_waits"])
        if context.db.execute(SQL["delete_organization"], values).rowcount:
            context.log.info("organization.purged", extra=extra)
            return True
    context.log.warning("organization.kept", extra={**extra, "reason": "restored, or somebody holds rows of it"})
    return False


def _keep(context: Context, organization_id: UUID, error: psycopg.Error) -> bool:
    """Report an organisation that something outside the pack refers to or locks; the others go on."""
    context.metrics.count("OrganizationsKept")
    reason = f"{type(error).__name__}: {error.diag.message_primary}"
    context.log.warning("organization.kept", extra={"organization_id": str(organization_id), "reason": reason})
    return False
