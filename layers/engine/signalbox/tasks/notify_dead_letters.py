"""Notify the operators, by an SNS topic, of dead letters that are new or have come back, every five minutes.

They are notified of kinds of failure, not of each failure: a critical kind has its own message, the others share one by
severity. Dead letters are marked after their message was published. So a crash in between notifies twice, and a dead
letter is never left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from psycopg.rows import class_row

from signalbox.aws.errors import unavailable
from signalbox.ledger.context import Context, Done
from signalbox.postgres.queries import load_queries
from signalbox.runtime.job_metrics import count_dead_letters

SQL = load_queries(__file__)
MOST_LETTERS = 10_000  # of one run; the next one continues
MOST_ALONE = 10  # critical kinds with their own message; the rest share one
MOST_LINES = 20  # in one message
LONGEST_SUBJECT = 100  # that SNS takes


@dataclass(frozen=True, slots=True)
class Kind:
    """Describe the new dead letters of one fingerprint."""

    severity: str
    fingerprint: str
    job_type: str
    failure_reason: str
    error_type: str | None
    error_message: str | None
    newest_id: str
    ids: list[str]

    @property
    def line(self) -> str:
        what = f"{self.error_type or 'no error'}: {' '.join((self.error_message or '').split())}"
        return f"{len(self.ids):,} × {self.job_type}, {self.failure_reason}: {what} (fingerprint {self.fingerprint})"


def notify_dead_letters(context: Context) -> Done:
    """Notify the operators. Items are the dead letters that were reported."""
    [total] = context.db.execute(SQL["count_new"]).fetchone() or (0,)
    with context.db.cursor(row_factory=class_row(Kind)) as cursor:
        kinds = cursor.execute(SQL["list_new_kinds"], {"most": MOST_LETTERS}).fetchall()
    reported, found = 0, sum(len(kind.ids) for kind in kinds)
    for batch in _batches(kinds):
        if context.budget.spent:
            return Done(reported, more=True)
        _publish(context, batch, remaining=total - found)
        reported += _mark(context, batch)
    return Done(reported, more=total > found)


def _batches(kinds: Sequence[Kind]) -> Iterator[list[Kind]]:
    """Return the kinds for each message. The query has sorted them by severity, then by size."""
    for severity, group in groupby(kinds, key=lambda kind: kind.severity):
        same = list(group)
        if severity == "critical":
            yield from ([kind] for kind in same[:MOST_ALONE])
            same = same[MOST_ALONE:]
        if same:
            yield same


def _publish(context: Context, batch: Sequence[Kind], remaining: int) -> None:
    number, severity = sum(len(kind.ids) for kind in batch), batch[0].severity
    topic, subject = context.settings.operators_topic_arn, _subject(context.invoker.stack, batch, number)
    if topic is not None:
        _send(context, topic, subject, _text(context.invoker.stack, batch, remaining), severity)
    context.log.warning(
        "dead_letters.noticed",
        extra={"severity": severity, "number": number, "kinds": len(batch), "fingerprint": batch[0].fingerprint},
    )


def _send(context: Context, topic: str, subject: str, text: str, severity: str) -> None:
    attributes: Any = {"severity": {"DataType": "String", "StringValue": severity}}  # subscribers may filter by it
    with unavailable("the operators' topic does not accept messages; the next run sends it again"):
        context.clients.sns.publish(TopicArn=topic, Subject=subject, Message=text, MessageAttributes=attributes)


def _subject(stack: str, batch: Sequence[Kind], number: int) -> str:
    what = batch[0].job_type if len(batch) == 1 else f"{len(batch)} kinds"
    text = f"[{stack}] {batch[0].severity}: {number} new dead letter{'s' if number > 1 else ''}, {what}"
    return "".join(letter if " " <= letter <= "~" else "?" for letter in text)[:LONGEST_SUBJECT]


def _text(stack: str, batch: Sequence[Kind], remaining: int) -> str:
    rest = batch[MOST_LINES:]
    lines = [f"New dead letters in stack {stack}:", ""]
    lines += [f"- {kind.line}" for kind in batch[:MOST_LINES]]
    if rest:
        number = sum(len(kind.ids) for kind in rest)
        lines.append(f"- and {number:,} more of {len(rest):,} other kinds")
    if remaining:
        lines.append(f"{remaining:,} more follow in the next message.")
    lines += ["", f"Details: signalbox dead-letters --stack {stack}"]
    lines += [f"Newest: {kind.newest_id}" for kind in batch[:1]]
    return "\n".join(lines)


def _mark(context: Context, batch: Sequence[Kind]) -> int:
    ids = [id_ for kind in batch for id_ in kind.ids]
    marked = context.db.execute(SQL["mark"], {"ids": ids}).rowcount
    count_dead_letters(context.invoker.stack, batch[0].severity, marked)
    return marked
