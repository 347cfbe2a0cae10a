"""Calculate when obligations are due, and their statuses.

obligations → the grid of each from its base_date → deadlines up to 90 days ahead → statuses → schedules
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from compliance.company.company_job import CompanyJob, CompanyPayload, Effects, Rows, work_through
from signalbox import Completed, JobContext, More, NewJob, Snooze
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
COUNTS = ("obligations", "deadlines_created", "due_soon", "overdue")


class MonitoringSchedule(CompanyPayload):
    """Say which company, and whether deadlines off the grid are looked for although nothing has changed."""

    force_recalculate: bool = False


def monitoring_schedule(context: JobContext) -> Completed | More | Snooze:
    """Do a piece; the last one has the company warned of new deadlines."""
    return work_through(context, Rows(find=SQL["find"], handle=_update, counts=COUNTS, finish=_warn))


def _update(job: CompanyJob, ids: list[str]) -> Effects:
    values = {**job.values, "ids": ids, "force": job.context.payload.force_recalculate}
    counts = job.context.db.execute(SQL["update"], values).fetchone() or ()
    return Effects(Counter(dict(zip(COUNTS, counts, strict=True))))


def _warn(job: CompanyJob, counts: Mapping[str, int]) -> None:
    """Have the company warned at once of deadlines that are new, and may be near."""
    if not counts["deadlines_created"]:
        return
    payload: MonitoringSchedule = job.context.payload
    slot = job.slot.isoformat()
    alert = {
        "company_id": job.company_id,
        "site_id": str(payload.site_id) if payload.site_id else None,
        "trigger_source": "MONITORING_JOB",
        "slot": slot,
    }
    key = f"deadline_alert:{job.company_id}:{slot}:monitoring"
    job.context.submit([NewJob("deadline_alert", alert, tenant=job.company_id, idempotency_key=key)])
