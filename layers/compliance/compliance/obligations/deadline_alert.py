"""Warn of deadlines that come near or have passed, once for each level.

deadlines within 7 days → the level of each → who is concerned, unless they or others were told → statuses
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

from compliance.company.company_job import CompanyJob, CompanyPayload, Effects, Rows, work_through
from compliance.company.notify import Channel, Notification, Severity
from compliance.company.people import Person
from signalbox import Completed, JobContext, More, Snooze
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
_LEVELS = (1, 3, 7)
_SEVERITIES: dict[int, Severity] = {0: "CRITICAL", 1: "CRITICAL", 3: "WARNING", 7: "INFO"}
_CHANNELS: dict[int, Sequence[Channel]] = {
    0: ("IN_APP", "EMAIL", "SMS"),
    1: ("IN_APP", "EMAIL", "SMS"),
    3: ("IN_APP", "EMAIL"),
    7: ("IN_APP", "EMAIL"),
}


class DeadlineAlert(CompanyPayload):
    """Say which company, and what has asked."""

    trigger_source: Literal["CRON", "MONITORING_JOB"] | None = None


@dataclass(frozen=True, slots=True)
class NearDeadline:
    """Hold one row of the query `read`."""

    id: str
    obligation_id: str
    site_id: str | None
    site_name: str | None
    due_date: date
    days: int  # until it is due; below 0 where it is overdue
    status: str
    is_latest: bool  # of the obligation's deadlines that are overdue
    told: int | None  # the gravest level that anybody was told; 0 is the gravest
    summary: str
    assigned_to: str | None

    @property
    def is_open(self) -> bool:
        return self.status in ("PENDING", "DUE_SOON")

    @property
    def level(self) -> int:
        return next((level for level in _LEVELS if 0 <= self.days <= level), 0)


def deadline_alert(context: JobContext) -> Completed | More | Snooze:
    """Do a piece: the deadlines of some obligations."""
    payload: DeadlineAlert = context.payload
    context.note(trigger_source=payload.trigger_source)
    counts = ("deadlines", "due_soon", "overdue")
    return work_through(context, Rows(find=SQL["find"], handle=_alert, counts=counts))


def _alert(job: CompanyJob, ids: list[str]) -> Effects:
    db, effects = job.context.db, Effects()
    values = {**job.values, "ids": ids}
    near = [NearDeadline(*row) for row in db.execute(SQL["read"], values).fetchall()]
    untold = []
    for deadline in filter(_is_news, near):
        if person := job.people.recipient(deadline.assigned_to, deadline.site_id):
            effects.tell(*_notifications(deadline, person))
        else:
            job.warn_of_nobody("DEADLINE", deadline.id)
            untold.append(deadline)
    # It will not become overdue again.
    db.execute(SQL["keep_untold"], {**values, "untold": [one.id for one in untold if one.level == 0]})
    due_soon = [one.id for one in near if one.status == "PENDING" and 0 <= one.days <= 3]
    overdue = [one.id for one in near if one.is_open and one.days < 0]
    for status, deadlines in (("DUE_SOON", due_soon), ("OVERDUE", overdue)):
        if deadlines:
            db.execute(SQL["set_status"], {**values, "status": status, "deadlines": deadlines})
    considered = sum(one.is_open for one in near)
    effects.counts.update(deadlines=considered, due_soon=len(due_soon), overdue=len(overdue))
    return effects


def _is_news(deadline: NearDeadline) -> bool:
    """Say whether nobody was told this level or a graver one; of several overdue ones the latest speaks for all."""
    if deadline.level == 0 and not deadline.is_latest:
        return False
    return deadline.told is None or deadline.told > deadline.level


def _notifications(deadline: NearDeadline, person: Person) -> list[Notification]:
    level = deadline.level
    return [
        Notification(
            to=person,
            channel=channel,
            job_type="deadline_alert",
            entity_type="DEADLINE",
            entity_id=deadline.id,
            parts=str(level),
            alert_type="DEADLINE_ALERT",
            severity=_SEVERITIES[level],
            title=_title(deadline),
            message=_message(deadline),
            site_id=deadline.site_id,
            action_url=f"/obligations/{deadline.obligation_id}",
            metadata={
                "threshold": level,
                "days_remaining": deadline.days,
                "due_date": deadline.due_date.isoformat(),
                "obligation_id": deadline.obligation_id,
            },
        )
        for channel in _CHANNELS[level]
    ]


def _title(deadline: NearDeadline) -> str:
    match deadline.days:
        case days if days < 0:
            return f"Overdue: {deadline.summary}"
        case 0:
            return f"Due today: {deadline.summary}"
        case 1:
            return f"Due tomorrow: {deadline.summary}"
        case days:
            return f"Due in {days} days: {deadline.summary}"


def _message(deadline: NearDeadline) -> str:
    was = "was" if deadline.days < 0 else "is"
    where = f" at {deadline.site_name}" if deadline.site_name else ""
    return f"{deadline.summary}{where} {was} due on {deadline.due_date.isoformat()}."
