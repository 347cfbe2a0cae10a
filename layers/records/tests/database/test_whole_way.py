"""A file goes from its upload to a narrative, in four jobs that each submit the next."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest

from tests.support.clinic import ASTHMA, BORN, PAGE, SALBUTAMOL, Clinic, coded, found, narrated

CONDITION = {
    "entity_no": 1,
    "name": "Asthma",
    "code": "J45.9",
    "code_system": "ICD-10",
    "status": "active",
    "onset_date": "2011-04-02",
    "confidence": 0.9,
}
MEDICATION = {
    "entity_no": 2,
    "name": "Salbutamol",
    "dose": "100 ug",
    "frequency": "as needed",
    "started_on": "2012-01-02",
    "stopped_on": "2013-03-04",
    "confidence": 0.75,
}


def as_said(row: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a row that a model has said, as JSON has them."""
    return {name: str(row[name]) if isinstance(row[name], date) else row[name] for name in said}


def test_file_becomes_rows_and_a_narrative(clinic: Clinic) -> None:
    file, other = clinic.upload(), clinic.upload()
    clinic.answers(found(ASTHMA, SALBUTAMOL), coded([CONDITION], [MEDICATION]), narrated())
    session = clinic.processed(file)
    [condition], [medication] = clinic.rows("patient_conditions"), clinic.rows("patient_medications")
    assert as_said(condition, CONDITION) == CONDITION | {"confidence": pytest.approx(0.9)}
    assert as_said(medication, MEDICATION) == MEDICATION
    assert [condition["superseded_at"], medication["superseded_at"]] == [None, None]
    [narrative] = clinic.rows("clinical_narratives")
    assert (narrative["narrative"], str(narrative["processing_session_id"])) == ("Asthma, treated.", session)
    done = clinic.file(file)
    assert (done["status"], str(done["processing_session_id"]), done["page_count"]) == ("completed", session, 1)
    assert done["processed_at"] is not None
    assert (clinic.file(other)["status"], clinic.file(other)["processed_at"]) == ("uploaded", None)


def test_long_file_keeps_its_lane_in_each_pass(clinic: Clinic) -> None:
    clinic.answers(found(ASTHMA), coded(), narrated())
    session = clinic.processed(clinic.upload(*[PAGE] * 11))
    passes = [clinic.passed(session, number) for number in (1, 2, 3)]
    assert {(one["lane"], one["payload"]["job_lane"], one["timeout_ms"]) for one in passes} == {
        ("heavy", "ai_queue_complex", 840_000)
    }


def test_narrative_to_supersede_is_handed_on_from_the_first_pass(clinic: Clinic) -> None:
    patient = clinic.patient()
    clinic.answers(*[found(ASTHMA), coded(), narrated()] * 2)
    clinic.processed(clinic.upload(patient_id=patient))
    [old] = clinic.rows("clinical_narratives")
    first = clinic.begun(clinic.upload(patient_id=patient), found(ASTHMA), coded(), narrated())
    payload = first["payload"] | {"narrative_id": str(old["id"])}
    clinic.stage.db.execute("DELETE FROM signalbox.jobs WHERE id = %s", (first["id"],))
    clinic.stage.submit("ai_processing", payload=payload)
    clinic.stage.drain()
    session = str(payload["processing_session_id"])
    assert [clinic.passed(session, n)["payload"]["narrative_id"] for n in (2, 3)] == [str(old["id"])] * 2
    assert f"narrative:{old['id']}" in clinic.passed(session, 3)["tags"]
    assert [row["superseded_at"] is None for row in clinic.rows("clinical_narratives")] == [False, True]


def test_each_job_names_the_next_and_says_what_it_found(clinic: Clinic) -> None:
    file = clinic.upload()
    clinic.answers(found(ASTHMA, SALBUTAMOL), coded([1], [2]), narrated())
    session = clinic.processed(file)
    shell, (one, two, three) = clinic.stage.job(session), [clinic.passed(session, n) for n in (1, 2, 3)]
    assert shell["result"] == {
        "processing_session_id": session,
        "page_count": 1,
        "estimated_tokens": 117,
        "job_lane": "ai_queue_simple",
        "ai_job_id": str(one["id"]),
    }
    tokens = ("input_tokens", "output_tokens")
    assert all(job["result"][name] > 0 for job in (one, two, three) for name in tokens)
    assert {name: value for name, value in one["result"].items() if name not in tokens} == {
        "pass_number": 1,
        "next_job_id": str(two["id"]),
        "entities": 2,
        "contamination_risk_score": 0.0,
        "manual_review_required": False,
        "cross_profile_risk_detected": False,
    }
    assert {name: value for name, value in two["result"].items() if name not in tokens} == {
        "pass_number": 2,
        "next_job_id": str(three["id"]),
        "conditions": 1,
        "medications": 1,
    }
    [narrative] = clinic.rows("clinical_narratives")
    assert {name: value for name, value in three["result"].items() if name not in tokens} == {
        "pass_number": 3,
        "next_job_id": None,
        "narrative_id": str(narrative["id"]),
    }


def test_jobs_hand_on_what_the_next_one_needs(clinic: Clinic) -> None:
    file = clinic.upload()
    clinic.answers(found(ASTHMA), coded(), narrated())
    fields = {"correlation_id": "case-7", "job_lane": "fast_queue"}
    row = clinic.file(file)
    ids = {"shell_file_id": file.upper(), "patient_id": str(row["patient_id"]), "raw_file": row["raw_file"]}
    session = clinic.stage.submit("shell_file_processing", payload=ids | fields, tenant="t-1", priority=3)
    clinic.stage.drain()
    shell, passes = clinic.stage.job(session), [clinic.passed(session, n) for n in (1, 2, 3)]
    assert (shell["lane"], shell["job_name"], shell["timeout_ms"]) == ("high", f"Shell file {file}", 300_000)
    assert [job["job_name"] for job in passes] == [f"Pass {n}: {file}" for n in (1, 2, 3)]
    assert [(job["lane"], job["priority"], job["tenant"]) for job in passes] == [("normal", 3, "t-1")] * 3
    assert {(job["subject_id"], job["correlation_id"]) for job in (shell, *passes)} == {(str(row["patient_id"]), file)}
    assert [job["tags"] for job in (shell, *passes)] == [[f"session:{session}"]] * 4
    assert [job["payload"] for job in passes] == [
        {
            "pass_number": number,
            "job_lane": "ai_queue_simple",
            "raw_file": row["raw_file"],
            "patient_id": str(row["patient_id"]),
            "shell_file_id": file,
            "correlation_id": "case-7",
            "estimated_tokens": 117 if number == 1 else 0,
            "ocr_spatial_data": f"records/ocr/{session}.json",
            "document_metadata": {"mime_type": "application/pdf", "page_count": 1},
            "processing_session_id": session,
            "narrative_id": None,
        }
        for number in (1, 2, 3)
    ]


def test_model_is_asked_for_one_tool_at_temperature_zero(clinic: Clinic) -> None:
    clinic.answers(found(ASTHMA, SALBUTAMOL), coded([1], [2]), narrated())
    clinic.processed(clinic.upload())
    asked = clinic.asked()
    tools = [call["toolConfig"]["toolChoice"]["tool"]["name"] for call in asked]
    assert tools == ["records_pass1", "records_pass2", "records_pass3"]
    assert [call["inferenceConfig"] for call in asked] == [{"maxTokens": 4096, "temperature": 0}] * 3
    assert BORN in asked[0]["messages"][0]["content"][0]["text"]


def test_model_and_bucket_are_those_of_the_settings(clinic: Clinic, moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file, bucket = clinic.upload(), f"records-{clinic.bucket}"
    clinic.s3.create_bucket(Bucket=bucket)
    key = clinic.file(file)["raw_file"]
    clinic.s3.copy_object(Bucket=bucket, Key=key, CopySource={"Bucket": clinic.bucket, "Key": key})
    clinic.s3.delete_object(Bucket=clinic.bucket, Key=key)
    monkeypatch.setenv("RECORDS_SETTINGS", json.dumps({"bucket": bucket, "model_id": "our.model"}))
    stage = clinic.stage.another()
    clinic.answers(found(ASTHMA), coded(), narrated())
    stage.submit_all([clinic.job_of(file)])
    stage.drain()
    assert clinic.file(file)["status"] == "completed"
    assert clinic.s3.get_object(Bucket=bucket, Key=clinic.file(file)["ocr_spatial_data"])
    assert {asked["modelId"] for asked in clinic.asked()} == {"our.model"}
    models = [clinic.rows(table)[0]["model"] for table in ("pass1_entity_metrics", "clinical_narratives")]
    assert models == ["our.model"] * 2
