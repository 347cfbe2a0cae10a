"""Send a pack of evidence to one recipient, attached or by a link.

SES has no key that would keep a second call from being a second mail, so a mail is sent at least once.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from psycopg.rows import class_row

from compliance.company.files import files_of
from compliance.company.notify import plain_title
from compliance.settings import ComplianceSettings
from compliance.sharing.link_tokens import hash_of, read_key, token_of
from compliance.sharing.pack_distribution import MOST_ATTACHED
from signalbox import Completed, JobContext, JobPayload, Permanent
from signalbox.aws.errors import call_errors
from signalbox.job_types.deliver_notification import is_address
from signalbox.postgres.queries import load_queries

if TYPE_CHECKING:
    from mypy_boto3_sesv2.type_defs import ContentTypeDef, MessageTypeDef

SQL = load_queries(__file__)
_ATTACHED = "The pack is attached."
_LINKED = "You can download the pack until {expires_at:%Y-%m-%d %H:%M} UTC:\n{link}"


class DeliverPack(JobPayload):
    """Say which distribution."""

    distribution_id: UUID


class Distribution(NamedTuple):
    """Hold what a mail is made of."""

    status: str
    is_revoked: bool
    delivery: str
    recipient_email: str | None
    recipient_name: str | None
    message: str | None
    expires_at: datetime
    path: str | None
    output_format: str
    company: str | None


def deliver_pack(context: JobContext) -> Completed:
    """Return the id by which SES knows the mail, or why there is none."""
    payload: DeliverPack = context.payload
    values = {"distribution_id": payload.distribution_id}
    with context.db.cursor(row_factory=class_row(Distribution)) as cursor:
        found = cursor.execute(SQL["find"], values).fetchone()
    if found is None:
        raise Permanent(f"distribution {payload.distribution_id} does not exist")
    if found.is_revoked or found.status == "SENT":
        return Completed({"message_id": None, "skipped": "REVOKED" if found.is_revoked else "SENT"})
    context.note(step="send", delivery=found.delivery)
    message_id = _send(context, found)
    context.db.execute(SQL["mark_sent"], values)
    return Completed({"message_id": message_id})


def _send(context: JobContext, found: Distribution) -> str:
    sender = context.resources.settings.sender_address
    if sender is None:
        raise Permanent("mail can't be sent: this stack has no SIGNALBOX_SENDER_ADDRESS")
    address = found.recipient_email or ""
    if not address.isascii() or not is_address("email", address):
        raise Permanent("the recipient's address is not a mail address")
    content = _compose(context, found)
    with call_errors("SES"):
        answer = context.clients.sesv2.send_email(
            FromEmailAddress=sender, Destination={"ToAddresses": [address]}, Content={"Simple": content}
        )
    return answer["MessageId"]


def _compose(context: JobContext, found: Distribution) -> MessageTypeDef:
    """Return the mail. SES writes its headers, and names stand in its text alone."""
    name, company = _one_line(found.recipient_name), _one_line(found.company)
    is_attached = found.delivery == "ATTACHMENT"
    place = _ATTACHED if is_attached else _link(context, found)
    greeting = f"Dear {name}," if name else "Hello,"
    text = "\n\n".join(filter(None, [greeting, found.message, place, company])) + "\n"
    mail: MessageTypeDef = {"Subject": _utf8(f"Audit pack of {company}"), "Body": {"Text": _utf8(text)}}
    if is_attached:
        data, file_name = _read(context, found.path)
        content_type = f"application/{found.output_format.lower()}"
        mail["Attachments"] = [{"RawContent": data, "FileName": file_name, "ContentType": content_type}]
    return mail


def _utf8(text: str) -> ContentTypeDef:
    return {"Data": text, "Charset": "UTF-8"}


def _one_line(text: str | None) -> str:
    """Return a text that a mail's subject can hold."""
    return " ".join(plain_title(text or "").split())


def _read(context: JobContext, path: str | None) -> tuple[bytes, str]:
    """Return the pack's file, and its name."""
    data = files_of(context).read(path, MOST_ATTACHED) if path else None
    if path is None or data is None:
        raise Permanent(f"the file of distribution {context.payload.distribution_id} does not exist")
    if len(data) > MOST_ATTACHED:
        raise Permanent(f"the file of distribution {context.payload.distribution_id} has become too large for a mail")
    return data, path.rpartition("/")[2]


def _link(context: JobContext, found: Distribution) -> str:
    """Return the words with the link, whose token works from now on."""
    public_url = context.resources.settings_of(ComplianceSettings).public_url.rstrip("/")
    if not public_url:
        raise Permanent("a link can't be made: this stack has no COMPLIANCE_PUBLIC_URL; then redrive the dead letter")
    id_ = str(context.payload.distribution_id)
    token = token_of(read_key(context), id_)
    context.db.execute(SQL["keep_token"], {"distribution_id": id_, "token_hash": hash_of(token)})
    return _LINKED.format(expires_at=found.expires_at.astimezone(UTC), link=f"{public_url}/shared/packs/{token}")
