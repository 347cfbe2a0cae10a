"""Make a snapshot ready: its facts are complete, and a person may seal it."""

from __future__ import annotations

from uuid import UUID

from passports.chain.events import append_event
from signalbox import Completed, JobContext, JobPayload
from signalbox.packs.refusals import refuse
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)


class BuildSnapshot(JobPayload):
    """Say which snapshot."""

    snapshot_id: UUID


def build_snapshot(context: JobContext) -> Completed:
    """Return the snapshot's status, and how many facts it has."""
    payload: BuildSnapshot = context.payload
    snapshot_id = str(payload.snapshot_id)
    row = context.db.execute(SQL["lock"], {"id": snapshot_id, "tenant": context.job.tenant}).fetchone()
    if row is None:
        raise refuse("NOT_FOUND", f"snapshot {snapshot_id} does not exist")
    tenant, status = row
    values = {"id": snapshot_id, "tenant": tenant}
    [(items, own)] = context.db.execute(SQL["count"], values).fetchall()
    if items != own:
        raise refuse("NOT_FOUND", f"{items - own} facts of snapshot {snapshot_id} do not exist")
    if status != "BUILDING":
        raise refuse("INVALID_SNAPSHOT_STATE", f"snapshot {snapshot_id} is {status}, and not BUILDING")
    context.db.execute(SQL["set_ready"], values)
    append_event(context.db, tenant, "DataSnapshot", snapshot_id, "SNAPSHOT_READY", {})
    return Completed({"snapshot_id": snapshot_id, "status": "READY", "item_count": items})
