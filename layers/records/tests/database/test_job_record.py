"""The findings of the audit of a job table can't happen here: each has a test of its name."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from tests.support.clinic import ASTHMA, Clinic, coded, found, narrated
from tests.support.template import ROOT

README = (ROOT / "layers/records/README.md").read_text("utf-8")
QUERIES = [query for block in re.findall(r"```sql\n(-- Are.*?)```", README, re.DOTALL) for query in block.split("\n\n")]


@pytest.fixture
def jobs(clinic: Clinic) -> list[dict[str, Any]]:
    """Process a file; return its four jobs, and one that has failed."""
    clinic.answers(found(ASTHMA), coded([1]), narrated(), found(stop_reason="content_filtered"))
    session = clinic.processed(clinic.upload())
    failed = clinic.processed(clinic.upload())
    rows = [clinic.stage.job(session), *(clinic.passed(session, number) for number in (1, 2, 3))]
    return [*rows, clinic.passed(failed, 1)]


def test_finding_1_worker_id_is_a_real_one(jobs: list[dict[str, Any]]) -> None:
    assert all(re.fullmatch(r"request-\d+/\w+", job["worker_id"]) for job in jobs)


def test_finding_2_no_heartbeat_is_left_after_the_end(jobs: list[dict[str, Any]]) -> None:
    assert [job["heartbeat_at"] for job in jobs] == [None] * 5


def test_finding_3_actual_duration_is_set(jobs: list[dict[str, Any]]) -> None:
    assert all(job["actual_duration"] == job["completed_at"] - job["started_at"] > timedelta(0) for job in jobs)


def test_finding_4_patient_id_has_a_column(clinic: Clinic, jobs: list[dict[str, Any]]) -> None:
    patients = {str(file["id"]): str(file["patient_id"]) for file in clinic.rows("shell_files")}
    assert [job["subject_id"] for job in jobs] == [patients[job["correlation_id"]] for job in jobs]


def test_finding_5_shell_file_id_has_a_column(jobs: list[dict[str, Any]]) -> None:
    assert [job["correlation_id"] for job in jobs] == [job["payload"]["shell_file_id"] for job in jobs]


def test_finding_6_each_failed_job_has_a_dead_letter(clinic: Clinic, jobs: list[dict[str, Any]]) -> None:
    letter = clinic.stage.dead_letter(str(jobs[-1]["id"]))
    assert (letter["failure_reason"], letter["created_at"] >= jobs[-1]["started_at"]) == ("permanent", True)


def test_finding_7_null_is_where_nothing_is_known(jobs: list[dict[str, Any]]) -> None:
    *done, failed = jobs
    assert [job["error_details"] for job in done] == [None] * 4
    assert failed["result"] is None
    assert all(job[name] is not None for job in jobs for name in ("job_type", "job_name", "payload", "created_at"))


def test_finding_8_no_lock_is_left_after_the_end(jobs: list[dict[str, Any]]) -> None:
    assert [(job["lease_token"], job["lease_expires_at"]) for job in jobs] == [(None, None)] * 5


def test_output_files_stay_empty(jobs: list[dict[str, Any]]) -> None:
    assert [job["output_files"] for job in jobs] == [None] * 5


def test_finding_9_priority_can_be_given(clinic: Clinic) -> None:
    file = clinic.upload()
    row = clinic.file(file)
    payload = {"shell_file_id": file, "patient_id": str(row["patient_id"]), "raw_file": row["raw_file"]}
    job = clinic.stage.step(clinic.stage.submit("shell_file_processing", payload=payload, priority=2))
    assert [job["priority"], clinic.passed(str(job["id"]), 1)["priority"]] == [2, 2]


def test_finding_10_error_details_say_the_cause(jobs: list[dict[str, Any]]) -> None:
    error = jobs[-1]["error_details"]
    assert (error["type"], "content_filtered" in error["message"]) == ("ModelRefused", True)


def test_updated_at_is_not_before_completed_at(jobs: list[dict[str, Any]]) -> None:
    assert all(job["updated_at"] >= job["completed_at"] >= job["started_at"] >= job["created_at"] for job in jobs)


def test_retries_are_counted_and_a_failure_without_any_says_why(clinic: Clinic, jobs: list[dict[str, Any]]) -> None:
    assert [(job["attempts"] - 1, job["max_attempts"] - 1) for job in jobs] == [(0, 3)] * 5
    assert clinic.stage.dead_letter(str(jobs[-1]["id"]))["failure_reason"] == "permanent"


def test_estimated_duration_is_filled_once_the_type_has_been_measured(clinic: Clinic) -> None:
    clinic.db.execute(
        "INSERT INTO signalbox.job_type_options (name, estimated_duration) VALUES ('shell_file_processing', '3 s') "
        "ON CONFLICT (name) DO UPDATE SET estimated_duration = excluded.estimated_duration"
    )
    assert clinic.read(clinic.upload())["estimated_duration"] == timedelta(seconds=3)


def test_each_query_of_the_audit_finds_what_it_looks_for(clinic: Clinic, jobs: list[dict[str, Any]]) -> None:
    ids, retries, workers, times = [clinic.db.execute(query.encode()).fetchall() for query in QUERIES]
    assert {(row[2], row[3]) for row in ids} == {(row[4], row[5]) for row in ids}
    assert sorted(retries) == [("completed", 0, 3, False, 5), ("failed", 0, 3, True, 1)]
    assert {worker for worker, _ in workers} == {row["worker_id"] for row in clinic.jobs()}
    assert all(row[4] >= row[3] and row[6] is None for row in times)
