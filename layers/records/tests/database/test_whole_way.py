"""A file goes from its upload to a narrative, in four jobs that each submit the next."""

from __future__ import annotations

from datetime import date

from tests.support.clinic import ASTHMA, BORN, SALBUTAMOL, Clinic, coded, found, told


def test_file_becomes_rows_and_a_narrative(clinic: Clinic) -> None:
    file = clinic.upload()
    condition = {
        "entity_no": 1,
        "name": "Asthma",
        "code": "J45.9",
        "code_system": "ICD-10",
        "status": "active",
        "onset_date": "2011-01-01",
        "confidence": 0.9,
    }
    clinic.answers(found(ASTHMA, SALBUTAMOL), coded([condition], [2]), told())
    session = clinic.processed(file)
    [stored] = clinic.rows("patient_conditions")
    assert (stored["name"], stored["code"], stored["onset_date"]) == ("Asthma", "J45.9", date(2011, 1, 1))
    [medication] = clinic.rows("patient_medications")
    assert (medication["name"], medication["entity_no"], medication["superseded_at"]) == ("Salbutamol", 2, None)
    [narrative] = clinic.rows("clinical_narratives")
    assert (narrative["narrative"], str(narrative["processing_session_id"])) == ("Asthma, treated.", session)
    done = clinic.file(file)
    assert (done["status"], str(done["processing_session_id"]), done["page_count"]) == ("completed", session, 1)
    assert done["processed_at"] is not None


def test_each_job_names_the_next_and_says_what_it_found(clinic: Clinic) -> None:
    file = clinic.upload()
    clinic.answers(found(ASTHMA, SALBUTAMOL), coded([1], [2]), told())
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
    clinic.answers(found(ASTHMA), coded(), told())
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
    clinic.answers(found(ASTHMA, SALBUTAMOL), coded([1], [2]), told())
    clinic.processed(clinic.upload())
    asked = clinic.asked()
    tools = [call["toolConfig"]["toolChoice"]["tool"]["name"] for call in asked]
    assert tools == ["records_pass1", "records_pass2", "records_pass3"]
    assert [call["inferenceConfig"] for call in asked] == [{"maxTokens": 4096, "temperature": 0}] * 3
    assert BORN in asked[0]["messages"][0]["content"][0]["text"]
