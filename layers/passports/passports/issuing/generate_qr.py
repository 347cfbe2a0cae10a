"""Draw the QR code of a signed passport: its version's id and three hashes, for checking it offline."""

from __future__ import annotations

from uuid import UUID

from passports.chain.events import append_event
from passports.issuing.qr import draw_qr, qr_payload
from signalbox import Completed, JobContext, JobPayload
from signalbox.packs.refusals import refuse
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)


class GenerateQr(JobPayload):
    """Say which version of a passport."""

    passport_version_id: UUID


def generate_qr(context: JobContext) -> Completed:
    """Return the text of the QR code. Where there is one already, nothing is written."""
    payload: GenerateQr = context.payload
    id_ = payload.passport_version_id
    values = {"passport_version_id": id_, "tenant": context.job.tenant}
    row = context.db.execute(SQL["lock"], values).fetchone()
    if row is None:
        raise refuse("NOT_FOUND", f"passport version {id_} does not exist")
    tenant_id, status, *hashes, text = row
    if status != "SIGNED":
        raise refuse("INVALID_PASSPORT_STATUS", f"passport version {id_} is {status}, not SIGNED")
    if text is None:
        text = qr_payload(id_, *hashes)
        drawn = {"tenant_id": tenant_id, "qr_payload": text, "qr_png": draw_qr(text)}
        context.db.execute(SQL["store"], values | drawn)
        append_event(context.db, tenant_id, "PassportVersion", id_, "QR_GENERATED", {"qr_payload": text})
    return Completed({"passport_version_id": str(id_), "qr_payload": text})
