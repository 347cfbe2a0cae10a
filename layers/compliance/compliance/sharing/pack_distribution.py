"""Send a pack of evidence to its recipients, each by a job of its own.

store a row and a job for each recipient → look every few seconds → tell who asked, once all have ended
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple
from uuid import UUID, uuid4

from psycopg.types.json import Jsonb
from pydantic import BaseModel, ConfigDict, Field

from compliance.company.files import files_of
from compliance.company.notify import Notification, notify
from compliance.company.people import People, Person
from compliance.sharing.link_tokens import hash_of, read_key, token_of
from signalbox import Completed, JobContext, JobPayload, NewJob, Permanent, Snooze
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
MOST_ATTACHED = 29_000_000  # bytes: 40 MB as mail, which is all that SES takes
_LOOK_AGAIN = timedelta(seconds=5)


class PackRecipient(BaseModel):
    """Name one recipient."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    email: str
    name: str | None = None


class PackDistribution(JobPayload):
    """Say which pack, its recipients, and how it is sent."""

    pack_id: UUID
    distribution_method: Literal["EMAIL", "SHARED_LINK"]
    recipients: list[PackRecipient] = Field(default_factory=list)  # none: who asks
    message: str | None = None
    expires_in_days: int = Field(30, ge=1, le=3650)
    requested_by: UUID


class SharedPack(NamedTuple):
    """Hold what is known of the pack."""

    company_id: str
    site_id: str | None
    path: str | None
    bytes: int


def pack_distribution(context: JobContext) -> Completed | Snooze:
    """Return the rows' ids, and how many mails were sent."""
    payload: PackDistribution = context.payload
    values = {"pack_id": payload.pack_id, "job_id": context.key}
    found = context.db.execute(SQL["pack"], values).fetchone()
    if found is None:
        raise Permanent(f"pack {payload.pack_id} does not exist")
    pack = SharedPack(*found)
    rows = context.db.execute(SQL["look"], values).fetchall()
    if not rows:
        _distribute(context, pack)
        return Snooze(_LOOK_AGAIN, "the mails are being sent")
    still_open = sum(is_open for _, _, is_open in rows)
    context.report(100 * (len(rows) - still_open) // len(rows), f"{len(rows) - still_open} of {len(rows)} have ended")
    if still_open:
        return Snooze(_LOOK_AGAIN, f"{still_open} of {len(rows)} mails are being sent")
    return _end(context, pack, [id_ for id_, _, _ in rows], Counter(status for _, status, _ in rows))


def _distribute(context: JobContext, pack: SharedPack) -> None:
    """Store a row for each recipient, with the job that serves it."""
    payload: PackDistribution = context.payload
    requester = _requester(context, pack)
    recipients = payload.recipients or [_as_recipient(requester)]
    delivery = _delivery(context, pack)
    context.note(step="store", delivery=delivery, recipients=len(recipients))
    key = read_key(context) if delivery == "LINK" else None
    values = {
        "pack_id": payload.pack_id,
        "job_id": context.key,
        "method": payload.distribution_method,
        "delivery": delivery,
        "message": payload.message,
        "expires_at": _expires_at(context),
        "requested_by": payload.requested_by,
        "rows": Jsonb([_row(one, key) for one in recipients]),
    }
    with context.db.transaction():
        new = [id_ for (id_,) in context.db.execute(SQL["insert"], values).fetchall()]
        context.submit([_job(id_, pack.company_id) for id_ in new])


def _requester(context: JobContext, pack: SharedPack) -> Person:
    requester = People.of(context.db, pack.company_id).one(context.payload.requested_by)
    if requester is None:
        raise Permanent(f"user {context.payload.requested_by} has no role in company {pack.company_id}")
    return requester


def _as_recipient(requester: Person) -> PackRecipient:
    if not requester.email:
        raise Permanent(f"there is nobody to send to: user {requester.id} has no mail address")
    return PackRecipient(email=requester.email)


def _delivery(context: JobContext, pack: SharedPack) -> Literal["ATTACHMENT", "LINK"]:
    """Return how the file gets to the recipients: a large one only by a link."""
    facts = files_of(context).facts(pack.path) if pack.path else None
    if facts is None:
        raise Permanent(f"the file of pack {context.payload.pack_id} does not exist")
    is_small = max(facts.bytes, pack.bytes) <= MOST_ATTACHED
    return "ATTACHMENT" if context.payload.distribution_method == "EMAIL" and is_small else "LINK"


def _expires_at(context: JobContext) -> datetime:
    return context.job.created_at + timedelta(days=context.payload.expires_in_days)


def _row(recipient: PackRecipient, key: bytes | None) -> dict[str, Any]:
    id_ = str(uuid4())
    token_hash = hash_of(token_of(key, id_)) if key is not None else None
    return {"id": id_, "email": recipient.email.strip(), "name": recipient.name, "token_hash": token_hash}


def _job(id_: str, company_id: str) -> NewJob:
    payload = {"distribution_id": id_}
    return NewJob("deliver_pack", payload, idempotency_key=f"deliver_pack:{id_}", tenant=company_id)


def _end(context: JobContext, pack: SharedPack, ids: Sequence[str], statuses: Counter[str]) -> Completed:
    """Tell who asked, and complete."""
    payload: PackDistribution = context.payload
    requester = People.of(context.db, pack.company_id).one(payload.requested_by)
    with context.db.transaction():
        notify(context, pack.company_id, [_notification(context, pack, requester, statuses)] if requester else [])
    result = {"pack_id": str(payload.pack_id), "distribution_ids": list(ids)}
    counts = {"sent": statuses["SENT"], "failed": statuses["FAILED"]}
    return Completed(result | counts | {"expires_at": _expires_at(context).isoformat()})


def _notification(context: JobContext, pack: SharedPack, requester: Person, statuses: Counter[str]) -> Notification:
    payload: PackDistribution = context.payload
    return Notification(
        to=requester,
        channel="IN_APP",
        job_type=context.job.job_type,
        entity_type="AUDIT_PACK",
        entity_id=str(payload.pack_id),
        parts=context.key,
        alert_type="SYSTEM",
        severity="INFO",
        title="Audit Pack Distributed",
        message=f"Your audit pack was sent to {statuses['SENT']} of {statuses.total()} recipients.",
        site_id=pack.site_id,
        action_url=f"/audit-packs/{payload.pack_id}/download",
        metadata={"sent": statuses["SENT"], "failed": statuses["FAILED"]},
    )
