"""Remind of obligations that are due soon and have no evidence, each day."""

from __future__ import annotations

from compliance.company.company_job import CompanyJob, CompanyPayload, Effects, Rows, work_through
from compliance.company.notify import Notification
from signalbox import Completed, JobContext, More, Snooze
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)


EvidenceReminder = CompanyPayload


def evidence_reminder(context: JobContext) -> Completed | More | Snooze:
    """Do a piece of the obligations that are due within 7 days."""
    return work_through(context, Rows(find=SQL["find"], handle=_remind, counts=("obligations",)))


def _remind(job: CompanyJob, ids: list[str]) -> Effects:
    effects = Effects()
    found = job.context.db.execute(SQL["read"], {**job.values, "ids": ids}).fetchall()
    effects.counts["obligations"] = len(found)
    for id_, site_id, summary, assigned_to, deadline, today, has_evidence in found:
        if has_evidence:
            continue
        person = job.people.recipient(assigned_to, site_id)
        if person is None:
            job.warn_of_nobody("OBLIGATION", id_)
            continue
        effects.tell(
            Notification(
                to=person,
                channel="EMAIL",
                job_type="evidence_reminder",
                entity_type="OBLIGATION",
                entity_id=id_,
                parts=today.isoformat(),
                alert_type="EVIDENCE_REMINDER",
                severity="WARNING",
                title=f"Evidence Required: {summary}",
                message=f"Evidence is required for obligation due on {deadline.isoformat()}",
                site_id=site_id,
                action_url=f"/obligations/{id_}",
                metadata={"days_until_due": (deadline - today).days},
            )
        )
    return effects
