"""Notify people: by mail (SES), by SMS or to a topic's subscribers (SNS), or in the application.

The application shows a notification exactly once. Mail and SNS deliver at least once, since neither takes a key that
would keep a second try from being a second message (except SNS topics that keep the order).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from signalbox.aws.errors import call_errors
from signalbox.packs.job_payload import JobPayload
from signalbox.packs.outcome import Completed, More, Permanent
from signalbox.postgres.queries import load_queries
from signalbox.worker.job_context import JobContext

SQL = load_queries(__file__)
Channel = Literal["email", "sms", "topic", "in_app"]

# Rough on purpose: only its server knows whether an address works. Nothing that could end a header.
_ADDRESSES: dict[str, tuple[re.Pattern[str], str]] = {
    "email": (
        re.compile(r"[!#-'*+./-9=?A-Z^-~-]{1,64}@[a-z0-9.-]{1,253}", re.IGNORECASE),
        "a mail address",
    ),
    "sms": (re.compile(r"\+[1-9][0-9]{6,14}"), "a number such as +15551234567"),
    "topic": (re.compile(r"arn:[^:\s]+:sns:[^:\s]+:[0-9]{12}:[A-Za-z0-9_-]+(\.fifo)?"), "a topic's ARN"),
    "in_app": (re.compile(r"[^\0]{1,200}"), "a recipient's id of at most 200 characters"),
}
_MOST_RECIPIENTS = {"email": 50, "sms": 100, "topic": 10, "in_app": 1000}
_LONGEST_TOPIC_SUBJECT = 100  # that SNS takes


def is_address(channel: Channel, address: str) -> bool:
    """Say whether a job of the channel would take the address."""
    form, _ = _ADDRESSES[channel]
    return form.fullmatch(address) is not None


class DeliverNotification(JobPayload):
    """Say which message to send to which recipients, and how."""

    channel: Channel
    # The order of the fields matters: each is checked against the channel. A topic can only be the one of the stack's
    # setting.
    recipients: Annotated[list[str], Field(default_factory=list, validate_default=True)]
    subject: Annotated[
        str | None, Field(min_length=1, max_length=998, pattern=r"^[^\x00-\x1f\x7f]*$", validate_default=True)
    ] = None
    body: Annotated[str, Field(min_length=1)]
    html: str | None = None  # of a mail, beside the text
    tenant: str | None = None  # else the job's
    notification_id: Annotated[str | None, Field(pattern=r"^[A-Za-z0-9_.@-]{1,128}$")] = None

    @field_validator("recipients")
    @classmethod
    def _recipients_fit_the_channel(cls, recipients: list[str], info: ValidationInfo) -> list[str]:
        channel = info.data.get("channel", "topic")
        form, example = _ADDRESSES[channel]
        if not recipients and channel != "topic":
            raise ValueError("nobody is named")
        if len(recipients) > (most := _MOST_RECIPIENTS[channel]):
            raise ValueError(f"{channel} takes at most {most} a job; submit several")
        for number, recipient in enumerate(recipients, 1):
            if not form.fullmatch(recipient):
                raise ValueError(f"number {number} is not {example}")
        return recipients

    @field_validator("subject")
    @classmethod
    def _mail_has_a_subject(cls, subject: str | None, info: ValidationInfo) -> str | None:
        if subject is None and info.data.get("channel") == "email":
            raise ValueError("a mail needs one")
        return subject

    @field_validator("html")
    @classmethod
    def _html_is_for_mail(cls, html: str | None, info: ValidationInfo) -> str | None:
        if html is not None and info.data.get("channel") != "email":
            raise ValueError("only a mail can have one")
        return html


def deliver_notification(context: JobContext) -> Completed | More:
    """Send the messages, and return the ids by which AWS knows them."""
    return _CHANNELS[context.payload.channel](context)


def _by_mail(context: JobContext) -> Completed:
    """Send one message to all recipients, who see each other."""
    sender = context.resources.settings.sender_address
    if sender is None:
        raise Permanent("mail can't be sent: this stack has no SIGNALBOX_SENDER_ADDRESS")
    payload: DeliverNotification = context.payload
    content: dict[str, Any] = {"Text": _text(payload.body)}
    if payload.html is not None:
        content["Html"] = _text(payload.html)
    headers = [{"Name": "X-Signalbox-Notification-Id", "Value": payload.notification_id or context.key}]
    answer = _call(
        "SES",
        context.clients.sesv2.send_email,
        FromEmailAddress=sender,
        Destination={"ToAddresses": list(dict.fromkeys(payload.recipients))},
        Content={"Simple": {"Subject": _text(payload.subject or ""), "Body": content, "Headers": headers}},
    )
    return Completed({"channel": "email", "message_ids": [answer["MessageId"]]})


def _by_sms(context: JobContext) -> Completed | More:
    return _one_by_one(context, context.payload.recipients, lambda number, _: {"PhoneNumber": number})


def _to_topics(context: JobContext) -> Completed | More:
    """Publish only to the stack's topic for jobs: the role may use the operators' topic, too, for tasks' failures."""
    topic = context.resources.settings.notifications_topic_arn
    if topic is None:
        raise Permanent("jobs can't publish to a topic: this stack has no SIGNALBOX_NOTIFICATIONS_TOPIC_ARN")
    topics: list[str] = context.payload.recipients or [topic]
    for named in topics:
        if named != topic:
            raise Permanent(
                f"topic {named} is not open to jobs in this stack: leave recipients out, or name {topic} "
                "(SIGNALBOX_NOTIFICATIONS_TOPIC_ARN)"
            )
    return _one_by_one(context, topics, lambda arn, place: _publication(context, arn, place))


def _publication(context: JobContext, arn: str, place: int) -> dict[str, Any]:
    payload: DeliverNotification = context.payload
    asked: dict[str, Any] = {"TopicArn": arn}
    if payload.subject is not None:
        # SNS takes at most a hundred ASCII characters for a subject, and the first one must not be blank.
        asked["Subject"] = payload.subject.encode("ascii", "replace").decode().strip()[:_LONGEST_TOPIC_SUBJECT] or "-"
    names = {"notification_id": payload.notification_id or context.key, "tenant": payload.tenant or context.job.tenant}
    asked["MessageAttributes"] = {
        name: {"DataType": "String", "StringValue": value} for name, value in names.items() if value
    }
    if arn.endswith(".fifo"):
        asked |= {"MessageGroupId": context.job.job_type, "MessageDeduplicationId": f"{context.key}-{place}"}
    return asked


def _one_by_one(
    context: JobContext, recipients: list[str], asked: Callable[[str, int], dict[str, Any]]
) -> Completed | More:
    """Send one message in each piece of the job: when the third fails, the first two are not sent again."""
    before: list[str] = context.cursor or []
    place = len(before)
    answer = _call("SNS", context.clients.sns.publish, Message=context.payload.body, **asked(recipients[place], place))
    sent = [*before, answer["MessageId"]]
    if len(sent) < len(recipients):
        return More(sent, percent=100 * len(sent) // len(recipients), message=f"{len(sent)} of {len(recipients)} sent")
    return Completed({"channel": context.payload.channel, "message_ids": sent})


def _in_the_application(context: JobContext) -> Completed:
    payload: DeliverNotification = context.payload
    done = context.db.execute(
        SQL["leave"],
        {
            "tenant": payload.tenant or context.job.tenant,
            "recipients": payload.recipients,
            "notification_id": payload.notification_id,
            "subject": payload.subject,
            "body": payload.body,
            "job_id": context.key,
        },
    )
    return Completed({"channel": "in_app", "new": done.rowcount})


def _call(service: str, call: Callable[..., Any], **asked: Any) -> Any:
    with call_errors(service):
        return call(**asked)


def _text(text: str) -> dict[str, str]:
    return {"Data": text, "Charset": "UTF-8"}


_CHANNELS: dict[Channel, Callable[[JobContext], Completed | More]] = {
    "email": _by_mail,
    "sms": _by_sms,
    "topic": _to_topics,
    "in_app": _in_the_application,
}
