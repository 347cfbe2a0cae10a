"""Tell people of jobs of theirs that have failed for good, once for each failure.

open dead letters that nobody was told of → whose job it was → a row and a delivery for each person, and an audit row
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compliance.company.notify import Channel, Notification, Severity, store_notifications
from compliance.company.people import MANAGERS, People, Person
from compliance.job_types import JOB_TYPES
from signalbox import Context, Done
from signalbox.batches.keyset import Page, walk
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
_TYPES = [job_type.name for job_type in JOB_TYPES]
_SEVERITIES: Mapping[str, Severity] = {
    "document_processing": "WARNING",
    "deadline_alert": "CRITICAL",
    "evidence_reminder": "WARNING",
    "permit_renewal_reminder": "WARNING",
    "cross_sell_trigger_detection": "INFO",
    "consultant_client_sync": "WARNING",
}
_IN_APP = ("document_processing", "cross_sell_trigger_detection")
_TITLES = {
    "document_processing": "Document Processing Failed",
    "excel_import_processing": "Excel import failed",
    "sampling_schedule": "Sampling schedule job failed",
    "run_hour_monitoring": "Run-hour monitoring job failed",
    "permit_renewal_reminder": "Permit renewal reminder job failed",
    "aer_generation": "AER generation failed",
    "audit_pack_generation": "Pack Generation Failed",
}


@dataclass(frozen=True, slots=True)
class FailedJob:
    """Hold one row of the query `find`."""

    id: str  # of the dead letter
    job_id: str
    job_type: str
    payload: dict[str, Any]
    redrives: int
    retries: int
    reason: str
    error: str
    company_id: str | None
    site_id: str | None
    person_id: str | None  # who is concerned
    document_title: str | None

    @property
    def texts(self) -> tuple[str, str]:
        """Return the title and the message."""
        name = self.job_type.upper()
        message = {
            "document_processing": f'Processing failed for "{self.document_title}". {self.error}',
            "excel_import_processing": f"Excel import failed - {self.error}",
            "audit_pack_generation": f"Failed to generate {self.payload.get('pack_type')} pack. Error: {self.error}",
        }.get(
            self.job_type,
            f"The {name} job failed after {self.retries} retries. Error: {self.error}. "
            "Please check the admin dashboard for details.",
        )
        return _TITLES.get(self.job_type, f"Background Job Failed: {name}"), message


def report_failed_jobs(context: Context) -> Done:
    """Items are the new notifications."""
    return walk(context.budget, "", lambda after, limit: _report(context, after, limit))


def _report(context: Context, after: str, limit: int) -> Page[str]:
    with context.db.transaction():
        rows = context.db.execute(SQL["find"], {"types": _TYPES, "after": after or None, "limit": limit}).fetchall()
        failed = [FailedJob(*row) for row in rows]
        values = {"letters": [one.id for one in failed], "companies": [one.company_id for one in failed]}
        context.db.execute(SQL["write_errors"], values)
        done = sum(_tell(context, one) for one in failed)
    return Page(len(failed), done, failed[-1].id if failed else after)


def _tell(context: Context, failed: FailedJob) -> int:
    told = store_notifications(context.db, context.log, failed.company_id, _notifications(context, failed))
    if told.deliveries:
        context.submit(told.deliveries)
    return told.new


def _notifications(context: Context, failed: FailedJob) -> Iterator[Notification]:
    of_document = failed.job_type == "document_processing"
    channel: Channel = "IN_APP" if failed.job_type in _IN_APP else "EMAIL"
    title, message = failed.texts
    people = _people(context, failed)
    if not people:
        context.log.warning(
            "compliance.recipient_missing", extra={"job_id": failed.job_id, "job_type": failed.job_type}
        )
    for person in people:
        yield Notification(
            to=person,
            channel=channel,
            job_type=failed.job_type,
            entity_type="DOCUMENT" if of_document else "BACKGROUND_JOB",
            entity_id=failed.payload["document_id"] if of_document else failed.job_id,
            key_id=failed.job_id,
            parts=f"FAILED:{failed.redrives}",
            alert_type="SYSTEM",
            severity=_SEVERITIES.get(failed.job_type, "ERROR"),
            title=title,
            message=message,
            site_id=failed.site_id,
            action_url=f"/review-queue?document_id={failed.payload['document_id']}" if of_document else None,
            metadata={
                "error_type": failed.reason,
                "error_message": failed.error,
                "can_retry": failed.reason != "permanent",
            },
        )


def _people(context: Context, failed: FailedJob) -> list[Person]:
    """Return who asked for the job, or the company's managers."""
    if failed.job_type == "consultant_client_sync":
        found = context.db.execute(SQL["user"], {"user_id": failed.person_id}).fetchall()
        return [Person(id_, email, phone, frozenset(), frozenset()) for id_, email, phone in found]
    if failed.company_id is None:
        return []
    people = People.of(context.db, failed.company_id)
    person = people.one(failed.person_id)
    return [person] if person else people.with_role(*MANAGERS)
