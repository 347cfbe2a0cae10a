"""Each task submits one job for each company, consultant or permit, once for a slot."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from signalbox.testing.stage import Stage
from tests.support.compliance_rows import Workforce, add

SLOT = datetime(2026, 1, 15, 8, tzinfo=UTC)
OF_COMPANIES = (
    "monitoring_schedule",
    "deadline_alert",
    "cross_sell_trigger_detection",
    "sampling_schedule",
    "run_hour_monitoring",
    "permit_renewal_reminder",
    "evidence_reminder",
)


def submitted(people: Workforce, job_type: str) -> list[tuple[Any, ...]]:
    return people.db.execute(
        "SELECT payload, tenant, idempotency_key FROM signalbox.jobs WHERE job_type = %s", (job_type,)
    ).fetchall()


@pytest.mark.parametrize("job_type", OF_COMPANIES)
def test_each_live_company_has_one_job_a_slot(stage: Stage, people: Workforce, job_type: str) -> None:
    add(people.db, "companies", name="gone", deleted_at=SLOT)
    answers = [stage.run(f"trigger_{job_type}", SLOT, force=force) for force in (False, True)]
    assert [answer["items"] for answer in answers] == [1, 0]
    slot = answers[0]["slot"]
    [(payload, tenant, key)] = submitted(people, job_type)
    assert payload["company_id"] == tenant == people.company_id
    assert datetime.fromisoformat(payload["slot"]) == datetime.fromisoformat(slot)
    assert key == f"{job_type}:{people.company_id}:{datetime.fromisoformat(slot).isoformat()}"


def test_each_consultant_with_clients_has_a_job(stage: Stage, people: Workforce) -> None:
    consultant, former = people.hire("CONSULTANT"), people.hire("CONSULTANT")
    for user, status in ((consultant, "ACTIVE"), (former, "INACTIVE")):
        ids = {"consultant_id": user, "client_company_id": people.company_id}
        add(people.db, "consultant_client_assignments", **ids, status=status)
    stage.run("trigger_consultant_client_sync", SLOT)
    [(payload, tenant, key)] = submitted(people, "consultant_client_sync")
    assert (payload["consultant_id"], payload["sync_type"], tenant) == (consultant, "FULL", consultant)
    assert key.startswith(f"consultant_client_sync:{consultant}:")


def test_each_permit_with_generators_has_last_years_report(stage: Stage, people: Workforce) -> None:
    permit = people.document()
    closed = add(people.db, "sites", company_id=people.company_id, deleted_at=SLOT)
    for document in (permit, permit, people.document(status="EXPIRED"), people.document(site_id=closed)):
        add(people.db, "generators", **people.ids, document_id=document)
    add(people.db, "generators", **people.ids, document_id=people.document(), is_active=False)
    people.document()
    assert stage.run("trigger_aer_generation", SLOT)["items"] == 1
    [(payload, tenant, key)] = submitted(people, "aer_generation")
    period = {"reporting_period_start": "2025-01-01", "reporting_period_end": "2025-12-31"}
    assert period.items() <= payload.items()
    assert (payload["document_id"], tenant) == (permit, people.company_id)
    assert key == f"aer_generation:{permit}:{SLOT.isoformat()}"
