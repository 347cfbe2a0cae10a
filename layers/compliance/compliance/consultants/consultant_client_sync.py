"""Check a consultant's clients, and sum up their compliance.

assignments → those that have ended are set INACTIVE → a dashboard for each of the others → the consultant is told
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import AwareDatetime

from compliance.company.bad_rows import all_but_bad, write_error
from compliance.company.notify import Notification, notify
from compliance.company.people import Person
from signalbox import Completed, JobContext, JobPayload, More
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
PIECE = 100
_COUNTS = ("assignments", "deactivated", "clients")


class ConsultantClientSync(JobPayload):
    """Say whose clients, what of them, and for which instant."""

    consultant_id: UUID
    sync_type: Literal["ASSIGNMENTS", "DASHBOARD", "FULL"] = "FULL"
    slot: AwareDatetime | None = None  # else when the job was submitted


def consultant_client_sync(context: JobContext) -> Completed | More:
    """Do a piece of the clients."""
    payload: ConsultantClientSync = context.payload
    before: dict[str, Any] = context.cursor or {"after": None, "counts": dict.fromkeys(_COUNTS, 0)}
    slot = payload.slot or context.job.created_at
    values = {"consultant_id": payload.consultant_id, "slot": slot, "after": before["after"], "limit": PIECE}
    clients = [id_ for (id_,) in context.db.execute(SQL["find"], values).fetchall()]
    counts = Counter(before["counts"]) + _sync(context, values, clients)
    cursor = {"after": clients[-1] if clients else before["after"], "counts": {name: counts[name] for name in _COUNTS}}
    context.note(**cursor)
    if len(clients) == PIECE:
        return More(cursor)
    if payload.sync_type == "FULL" and counts["assignments"]:
        _tell(context, slot, counts)
    return Completed(cursor["counts"])


def _sync(context: JobContext, values: dict[str, Any], clients: Sequence[str]) -> Counter[str]:
    sync_type = context.payload.sync_type

    def handle(some: Sequence[str]) -> Counter[str]:
        given, counts = {**values, "clients": list(some)}, Counter(assignments=len(some))
        if sync_type != "DASHBOARD":
            counts["deactivated"] = context.db.execute(SQL["deactivate"], given).rowcount
        if sync_type != "ASSIGNMENTS":
            counts["clients"] = context.db.execute(SQL["write_dashboards"], given).rowcount
        return counts

    def skip(client: str, error: Exception) -> Counter[str]:
        write_error(context, client, error, client)
        return Counter(assignments=1)

    return all_but_bad(context.db, clients, handle, skip)


def _tell(context: JobContext, slot: datetime, counts: Counter[str]) -> None:
    """Tell the consultant, who is no person of one company."""
    consultant = str(context.payload.consultant_id)
    if context.db.execute(SQL["user"], {"consultant_id": consultant}).fetchone() is None:
        return
    notification = Notification(
        to=Person(consultant, None, None, frozenset(), frozenset()),
        channel="IN_APP",
        job_type="consultant_client_sync",
        entity_type="CONSULTANT",
        entity_id=consultant,
        parts=slot.isoformat(),
        alert_type="SYSTEM",
        severity="INFO",
        title="Client dashboard updated",
        message=f"{counts['clients']} clients were summed up, and {counts['deactivated']} assignments have ended.",
        metadata={name: counts[name] for name in _COUNTS},
    )
    notify(context, None, [notification])
