"""A pass after the first waits for a person where the document may be another patient's."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from psycopg.errors import CheckViolation

from records.passes import answers, later_pass
from tests.support.clinic import ASTHMA, Clinic, coded, found, narrated
from tests.support.dead_letters import redrive

STRANGER = {"name": "Eva Roth", "date_of_birth": None, "page": 1}


def flagged(clinic: Clinic, *answers: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the session and the second pass of a file that may be another patient's."""
    job = clinic.begun(clinic.upload(), found(ASTHMA, subjects=[STRANGER]), *answers, number=2)
    return str(job["payload"]["processing_session_id"]), job


def status(clinic: Clinic, job: dict[str, Any]) -> str:
    return str(clinic.file(str(job["payload"]["shell_file_id"]))["status"])


def test_flagged_file_waits_and_is_looked_at_each_quarter_of_an_hour(clinic: Clinic) -> None:
    session, job = flagged(clinic)
    waiting = clinic.step(job)
    assert (waiting["status"], waiting["attempts"], status(clinic, job)) == ("pending", 0, "awaiting_review")
    assert timedelta(minutes=14.9) < waiting["scheduled_for"] - waiting["updated_at"] <= timedelta(minutes=15)
    [audit] = clinic.rows("profile_classification_audit")
    assert (float(audit["contamination_risk_score"]), str(audit["processing_session_id"])) == (0.6, session)
    assert len(clinic.asked()) == 1


def test_approved_file_goes_on_to_its_end(clinic: Clinic) -> None:
    session, job = flagged(clinic, coded([1]), narrated())
    clinic.step(job)
    clinic.decide(session, "approved")
    assert (clinic.step(job)["status"], status(clinic, job)) == ("completed", "processing")
    clinic.stage.drain()
    assert status(clinic, job) == "completed"


def test_rejected_file_is_cancelled_without_asking(clinic: Clinic) -> None:
    session, job = flagged(clinic)
    clinic.step(job)
    clinic.decide(session, "rejected")
    assert (clinic.step(job)["status"], status(clinic, job), len(clinic.asked())) == ("cancelled", "rejected", 1)


@pytest.mark.parametrize(("flag", "number"), [("manual_review_required", 2), ("cross_profile_risk_detected", 3)])
def test_flag_that_is_set_while_the_model_works_keeps_its_answer_out(
    clinic: Clinic, flag: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = clinic.begun(clinic.upload(), found(ASTHMA), coded([1]), narrated(), narrated(), number=number)
    check = answers.check

    def set_flag(*asked: Any) -> Any:
        clinic.db.execute(f"UPDATE records.profile_classification_audit SET {flag} = true")
        return check(*asked)

    monkeypatch.setattr(later_pass, "check", set_flag)
    assert (clinic.step(job)["status"], status(clinic, job)) == ("pending", "awaiting_review")
    assert len(clinic.rows("patient_conditions" if number == 2 else "clinical_narratives")) == 0


def test_rejection_while_the_model_works_cancels_the_pass(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    job = clinic.begun(clinic.upload(), found(ASTHMA), coded([1]), number=2)
    check = answers.check

    def reject(*asked: Any) -> Any:
        clinic.decide(str(job["payload"]["processing_session_id"]), "rejected")
        return check(*asked)

    monkeypatch.setattr(later_pass, "check", reject)
    assert (clinic.step(job)["status"], status(clinic, job)) == ("cancelled", "rejected")
    assert clinic.rows("patient_conditions") == []


def wait_for(clinic: Clinic, days: float) -> None:
    statement = "UPDATE records.profile_classification_audit SET created_at = now() - %s"
    clinic.db.execute(statement, (timedelta(days=days),))


def test_review_is_overdue_after_30_days_and_goes_on_once_decided(clinic: Clinic) -> None:
    session, job = flagged(clinic, coded([1]))
    wait_for(clinic, 29.999)
    assert clinic.step(job)["status"] == "pending"
    wait_for(clinic, 30)
    failed = clinic.step(job)
    assert (failed["status"], status(clinic, job)) == ("failed", "awaiting_review")
    assert failed["error_details"]["message"].startswith("REVIEW_OVERDUE: ")
    clinic.decide(session, "approved")
    redrive(clinic.stage, str(clinic.stage.dead_letter(str(job["id"]))["id"]))
    assert clinic.step(job)["status"] == "completed"


def test_review_that_is_overdue_at_the_first_look_leaves_the_file_waiting(clinic: Clinic) -> None:
    _, job = flagged(clinic)
    wait_for(clinic, 31)
    assert (clinic.step(job)["status"], status(clinic, job)) == ("failed", "awaiting_review")


def test_pass_without_a_classification_is_refused(clinic: Clinic) -> None:
    job = clinic.begun(clinic.upload())
    early = clinic.stage.submit("ai_processing", payload=job["payload"] | {"pass_number": 2})
    assert clinic.stage.step(early)["error_details"]["message"].startswith("NOT_FOUND: ")


def test_review_is_whole_or_not_there(clinic: Clinic) -> None:
    session, _ = flagged(clinic)
    with pytest.raises(CheckViolation, match="review_is_whole"):
        clinic.db.execute("UPDATE records.profile_classification_audit SET review_decision = 'approved'")
    with pytest.raises(CheckViolation, match="decision_known"):
        clinic.decide(session, "maybe")
