"""Submit the jobs of a slot: one for each company, for each consultant, or for each permit with generators.

rule → task → a page of ids → a job each. A slot that runs again stores none a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from typing import Any

from signalbox import Context, Done
from signalbox.batches.fan_out import fan_out
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)


def _for_each_company(job_type: str) -> Callable[[Context], Done]:
    def trigger(context: Context) -> Done:
        return fan_out(context, job_type, partial(_ids, context, "companies"), lambda id_: {"company_id": id_})

    return trigger


trigger_monitoring_schedule = _for_each_company("monitoring_schedule")
trigger_deadline_alert = _for_each_company("deadline_alert")
trigger_cross_sell_trigger_detection = _for_each_company("cross_sell_trigger_detection")
trigger_sampling_schedule = _for_each_company("sampling_schedule")
trigger_run_hour_monitoring = _for_each_company("run_hour_monitoring")
trigger_permit_renewal_reminder = _for_each_company("permit_renewal_reminder")
trigger_evidence_reminder = _for_each_company("evidence_reminder")


def trigger_consultant_client_sync(context: Context) -> Done:
    """Submit a job for each consultant who has clients."""
    find = partial(_ids, context, "consultants")
    return fan_out(context, "consultant_client_sync", find, lambda id_: {"consultant_id": id_, "sync_type": "FULL"})


def trigger_aer_generation(context: Context) -> Done:
    """Submit a job for each permit with generators, about the calendar year before the slot."""
    year = context.slot.year - 1
    period = {
        "reporting_period_start": date(year, 1, 1).isoformat(),
        "reporting_period_end": date(year, 12, 31).isoformat(),
    }
    companies: dict[str, str] = {}

    def find(after: str, limit: int) -> Sequence[str]:
        companies.clear()
        companies.update(context.db.execute(SQL["permits"], {"after": after or None, "limit": limit}).fetchall())
        return list(companies)

    def payload(id_: str) -> Mapping[str, Any]:
        return {"document_id": id_, "company_id": companies[id_], **period}

    return fan_out(context, "aer_generation", find, payload, companies.__getitem__)


def _ids(context: Context, query: str, after: str, limit: int) -> Sequence[str]:
    found = context.db.execute(SQL[query], {"after": after or None, "limit": limit}).fetchall()
    return [id_ for (id_,) in found]
