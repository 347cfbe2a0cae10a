"""People are told of jobs of theirs that have failed, once for each failure."""

from __future__ import annotations

from typing import Any

import pytest

from signalbox.testing.stage import Stage
from tests.support.compliance_rows import Workforce, add, rows
from tests.support.dead_letters import letter_of, redrive

NOBODY = "00000000-0000-4000-8000-000000000000"


def fail(stage: Stage, job_type: str, **payload: Any) -> str:
    """Submit a job that is refused for good; return its id."""
    job_id = stage.submit(job_type, payload=payload)
    assert stage.step(job_id)["status"] == "failed"
    return job_id


def report(stage: Stage) -> int:
    items: int = stage.run("report_failed_jobs", force=True)["items"]
    return items


def test_the_managers_are_told_of_a_companys_job_once(stage: Stage, people: Workforce) -> None:
    admin = people.hire("ADMIN")
    people.hire("STAFF")
    job_id = fail(stage, "deadline_alert", company_id=people.company_id, site_id=NOBODY)
    assert [report(stage) for _ in range(2)] == [2, 0]
    keys = sorted(f"DEADLINE_ALERT:{job_id}:FAILED:0:{user}:EMAIL" for user in (admin, people.owner_id))
    columns = ("dedupe_key", "severity", "title", "entity_type")
    found = rows(people.db, "notifications", *columns, order="dedupe_key")
    title = "Background Job Failed: DEADLINE_ALERT"
    assert found == [(key, "CRITICAL", title, "BACKGROUND_JOB") for key in keys]
    deliveries = people.db.execute("SELECT count(*) FROM signalbox.jobs WHERE job_type = 'deliver_notification'")
    assert deliveries.fetchone() == (2,)


def test_the_audit_log_has_each_failure_once(stage: Stage, people: Workforce) -> None:
    people.db.execute("DELETE FROM compliance.user_roles")
    job_id = fail(stage, "deadline_alert", company_id=people.company_id, site_id=NOBODY)
    assert [report(stage) for _ in range(2)] == [0, 0]
    [(entity, previous, new)] = rows(people.db, "audit_logs", "entity_id", "previous_values", "new_values")
    assert (str(entity), previous["company_id"], new["error_name"]) == (job_id, people.company_id, "Permanent")
    people.hire("OWNER")
    assert report(stage) == 1, "told once there is somebody"


def test_a_failure_after_a_redrive_is_told_again(stage: Stage, people: Workforce) -> None:
    job_id = fail(stage, "deadline_alert", company_id=people.company_id, site_id=NOBODY)
    report(stage)
    redrive(stage, letter_of(stage, job_id))
    assert report(stage) == 0, "it is on its way"
    assert stage.step(job_id)["status"] == "failed"
    assert report(stage) == 1
    assert len(rows(people.db, "audit_logs", "id")) == 2


@pytest.mark.parametrize("status", ["resolved", "ignored"])
def test_dead_letters_that_are_closed_are_not_told(stage: Stage, people: Workforce, status: str) -> None:
    job_id = fail(stage, "deadline_alert", company_id=people.company_id, site_id=NOBODY)
    stage.operate("triage_dead_letters", ids=[letter_of(stage, job_id)], decision=status, reason="known", by="ada")
    assert report(stage) == 0


def test_who_asked_is_told_and_else_the_managers(stage: Stage, people: Workforce) -> None:
    asked = people.hire("STAFF")
    period = {"reporting_period_start": "2025-01-01", "reporting_period_end": "2025-12-31"}
    theirs = {"document_id": NOBODY, "company_id": people.company_id, **period}
    fail(stage, "aer_generation", **theirs, requested_by=asked)
    report(stage)
    assert [str(user) for (user,) in rows(people.db, "notifications", "user_id")] == [asked]
    fail(stage, "aer_generation", **theirs)
    report(stage)
    assert people.owner_id in {str(user) for (user,) in rows(people.db, "notifications", "user_id")}


def test_a_consultant_is_told_of_their_own_job(stage: Stage, people: Workforce) -> None:
    consultant = add(people.db, "users", email="c@example.com")
    job_id = stage.submit("consultant_client_sync", payload={"consultant_id": consultant})
    people.db.execute("ALTER TABLE compliance.consultant_client_assignments RENAME COLUMN status TO other")
    for _ in range(2):
        stage.step(job_id)
    people.db.execute("ALTER TABLE compliance.consultant_client_assignments RENAME COLUMN other TO status")
    assert report(stage) == 1
    assert rows(people.db, "notifications", "severity", "company_id") == [("WARNING", None)]


def test_the_uploader_is_told_within_the_application(stage: Stage, people: Workforce, bucket: str) -> None:
    uploader = people.hire("STAFF")
    module = add(people.db, "modules", module_code="MODULE_1")
    document = people.document(uploaded_by=uploader, module_id=module)
    job_id = fail(stage, "document_processing", document_id=document)
    report(stage)
    columns = ("dedupe_key", "entity_type", "entity_id", "severity", "title", "action_url")
    [(key, kind, entity, severity, title, url)] = rows(people.db, "notifications", *columns)
    assert key == f"DOCUMENT_PROCESSING:{job_id}:FAILED:0:{uploader}:IN_APP"
    assert (kind, str(entity), severity, title) == ("DOCUMENT", document, "WARNING", "Document Processing Failed")
    assert url == f"/review-queue?document_id={document}"
    errors = rows(people.db, "audit_logs", "company_id", "action_type")
    assert (people.company_id, "JOB_ERROR") in [(str(company), action) for company, action in errors]
