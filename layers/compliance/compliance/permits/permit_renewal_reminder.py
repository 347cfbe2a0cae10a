"""Remind of permits that expire, once for each level of days before."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Annotated

from pydantic import Field

from compliance.company.company_job import CompanyJob, CompanyPayload, Effects, Rows, work_through
from compliance.company.notify import Notification, Severity
from compliance.company.people import MANAGERS, Person
from signalbox import Completed, JobContext, More, Snooze
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
Days = Annotated[int, Field(ge=0, le=3650)]


class PermitRenewalReminder(CompanyPayload):
    """Say which company, and how many days before people are reminded."""

    reminder_days: list[Days] = Field([90, 30, 7], min_length=1, max_length=50)


@dataclass(frozen=True, slots=True)
class Permit:
    """Hold one row of the query `read`."""

    id: str
    site_id: str | None
    title: str
    document_type: str
    permit_number: str
    expiry_date: date
    days: int
    told: int | None  # the nearest level that anybody was reminded at of this expiry date


def permit_renewal_reminder(context: JobContext) -> Completed | More | Snooze:
    """Do a piece of the permits that expire soon."""
    payload: PermitRenewalReminder = context.payload
    values = {"most_days": max(payload.reminder_days)}
    return work_through(context, Rows(find=SQL["find"], handle=_remind, counts=("documents",), values=values))


def _remind(job: CompanyJob, ids: list[str]) -> Effects:
    levels = sorted(job.context.payload.reminder_days)
    values = {**job.values, "ids": ids, "most_days": levels[-1]}
    permits = [Permit(*row) for row in job.context.db.execute(SQL["read"], values).fetchall()]
    effects = Effects()
    effects.counts["documents"] = len(permits)
    for permit in permits:
        level = next(level for level in levels if permit.days <= level)
        if permit.told is None or permit.told > level:
            effects.tell(*_notifications(job, permit, level))
    return effects


def _notifications(job: CompanyJob, permit: Permit, level: int) -> list[Notification]:
    people = _people(job, permit, level)
    if not people:
        job.warn_of_nobody("DOCUMENT", permit.id)
    expiry = permit.expiry_date.isoformat()
    return [
        Notification(
            to=person,
            channel="EMAIL",
            job_type="permit_renewal_reminder",
            entity_type="DOCUMENT",
            entity_id=permit.id,
            parts=f"{expiry}:{level}",
            alert_type="DEADLINE_ALERT",
            severity=_severity(level),
            title=f"{permit.days} Days: {permit.title} Renewal",
            message=(
                f"Your {permit.document_type} ({permit.permit_number}) expires on {expiry}. "
                "Please initiate renewal process."
            ),
            site_id=permit.site_id,
            action_url=f"/documents/{permit.id}",
            metadata={"reminder_type": "PERMIT_RENEWAL", "reminder_days": level, "expiry_date": expiry},
        )
        for person in people
    ]


def _severity(level: int) -> Severity:
    if level > 30:
        return "INFO"
    return "WARNING" if level > 7 else "CRITICAL"


def _people(job: CompanyJob, permit: Permit, level: int) -> list[Person]:
    """Return the managers; from 30 days on the site's staff, too, and from 7 days on all who work there."""
    chosen = {person.id: person for person in job.people.with_role(*MANAGERS)}
    for person in job.people.of_site(permit.site_id):
        if level <= 7 or (level <= 30 and person.has_role("STAFF")):
            chosen[person.id] = person
    return list(chosen.values())
