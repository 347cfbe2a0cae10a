"""Sign a passport's receipt, if it says what the passport's row says, and have its QR code drawn.

The row is written before it is signed, and other code may write rows, too: all of it is computed again here.
"""

from __future__ import annotations

from uuid import UUID

from passports.chain.events import append_event
from passports.encoding.canonical import read_own, sha256
from passports.issuing.documents import Documents, Hashes, Issue, proof_of, receipt_of
from passports.issuing.signature import sign
from passports.issuing.signing_key import SigningKey, read_signing_key
from passports.settings import PassportSettings
from signalbox import Completed, JobContext, JobPayload, NewJob
from signalbox.packs.refusals import refuse
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)


class SignPassport(JobPayload):
    """Say which version of a passport."""

    passport_version_id: UUID


def sign_passport(context: JobContext) -> Completed:
    """Return the key's id, the signature, and the job that draws the QR code."""
    payload: SignPassport = context.payload
    issue, documents = _lock(context)
    if not _is_consistent(issue, documents):
        raise refuse("RECEIPT_MISMATCH", f"the receipt of version {payload.passport_version_id} is not that of its row")
    key = read_signing_key(context.clients, context.resources.settings_of(PassportSettings).signing_secret_arn)
    signature = sign(key.private, documents.receipt_hash)
    _store(context, issue.tenant_id, key, signature)
    drawing = NewJob(
        "generate_qr",
        payload.model_dump(mode="json"),
        idempotency_key=f"qr-{payload.passport_version_id}",
        priority=2,
        tenant=str(issue.tenant_id),
    )
    [submitted] = context.submit([drawing])
    found = {"key_id": key.key_id, "signature": signature.hex(), "qr_job_id": submitted.id}
    return Completed(payload.model_dump(mode="json") | found)


def _is_consistent(issue: Issue, documents: Documents) -> bool:
    """Say whether the three documents have the row's hashes, and the receipt repeats the row's other columns."""
    try:
        leaves = read_own(documents.proof)["leaves"]
        rules_hash = bytes.fromhex(read_own(documents.receipt)["rules_hash"])
        hashes = Hashes(sha256(documents.payload), documents.proof_root_hash, rules_hash)
        return (
            hashes.payload == documents.payload_hash
            and sha256(documents.receipt) == documents.receipt_hash
            and proof_of(leaves) == (documents.proof, documents.proof_root_hash)
            and len(rules_hash) == 32
            and receipt_of(issue, hashes) == documents.receipt
        )
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError):  # a document is not what it is called
        return False


def _lock(context: JobContext) -> tuple[Issue, Documents]:
    """Lock the version, which must be new, and return what has been compiled."""
    id_ = context.payload.passport_version_id
    row = context.db.execute(SQL["lock"], {"passport_version_id": id_, "tenant": context.job.tenant}).fetchone()
    if row is None:
        raise refuse("NOT_FOUND", f"passport version {id_} does not exist")
    status, *rest = row
    if status != "COMPILING":
        raise refuse("INVALID_PASSPORT_STATUS", f"passport version {id_} is {status}, not COMPILING")
    return Issue(*rest[:6]), Documents(*rest[6:])


def _store(context: JobContext, tenant_id: UUID, key: SigningKey, signature: bytes) -> None:
    id_ = context.payload.passport_version_id
    values = {
        "passport_version_id": id_,
        "tenant_id": tenant_id,
        "signature": signature,
        "key_id": key.key_id,
        "public": key.public,
    }
    context.db.execute(SQL["sign"], values)
    append_event(context.db, tenant_id, "PassportVersion", id_, "PASSPORT_SIGNED", {"key_id": key.key_id})
