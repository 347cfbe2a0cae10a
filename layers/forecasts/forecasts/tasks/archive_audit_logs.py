"""Move audit records older than their retention to cold storage, once a night (MAINT-004).

    plan → fetch → upload → verify → delete, and close the plan in the same transaction

The plan is a row that names the records and their object; there is one at a time. After a crash it is still open, and
the next run continues it: the same records under the same name, whatever has become old meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from forecasts.settings import settings_of
from signalbox.aws.cold_storage import ColdStorage
from signalbox.ledger.context import Context, Done
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
# An object has at most this many records, or fewer large ones: small cold objects cost more per stored byte.
MOST_RECORDS = 10_000
MOST_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class ArchivePlan:
    """Describe the records on their way into one object."""

    key: str
    ids: list[int]


def archive_audit_logs(context: Context) -> Done:
    """Items are the records moved."""
    bucket = settings_of(context).archive_bucket
    storage = ColdStorage(context.clients.s3, bucket, settings_of(context).archive_storage_class)
    items = 0
    while not context.budget.spent:
        plan = _plan(context)
        if plan is None:
            return Done(items)
        items += _archive(context, storage, plan)
    return Done(items, more=True)


def _plan(context: Context) -> ArchivePlan | None:
    """Return the plan that a crash left open, else a new one; None if nothing is old enough."""
    values = {
        "before": context.now - timedelta(days=settings_of(context).retention_audit_days),
        "now": context.now,
        "most_records": MOST_RECORDS,
        "most_bytes": MOST_BYTES,
    }
    context.db.execute(SQL["plan"], values)
    row = context.db.execute(SQL["find_open"]).fetchone()
    return None if row is None else ArchivePlan(*row)


def _archive(context: Context, storage: ColdStorage, plan: ArchivePlan) -> int:
    records = context.db.execute(SQL["fetch"], {"key": plan.key}).fetchall()
    if not records:
        # Another worker was quicker, or all of them were deleted: an empty object must not replace theirs.
        context.db.execute(SQL["drop_empty"], {"key": plan.key})
        return 0
    stored = storage.store(plan.key, [line for _, line in records])
    values = {
        "key": plan.key,
        "ids": [id_ for id_, _ in records],
        "now": context.now,
        "bytes": stored.bytes,
        "sha256": stored.sha256,
    }
    row = context.db.execute(SQL["delete_and_close"], values).fetchone()
    context.log.info("audit_logs.archived", extra={"key": plan.key, "count": len(records)})
    return int(row[0]) if row else 0
