"""An uploaded file is read by its own text or by Textract, and refused by a code where it can't be."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from psycopg.errors import InvalidParameterValue

from records.intake import read_file, shell_file_processing
from records.intake.shell_file import lock_session
from signalbox.documents import ocr
from signalbox.errors import JobRefused
from signalbox.packs.outcome import Transient
from signalbox.testing.rows import count
from tests.support.clinic import PAGE, Clinic
from tests.support.dead_letters import redrive
from tests.support.pdfs import pdf

PNG, JPEG = b"\x89PNG\r\n\x1a\n rest", b"\xff\xd8\xff rest"
LONG = "a line of a page that is long enough"


def test_text_of_a_pdf_is_kept_with_its_places(clinic: Clinic) -> None:
    job = clinic.read(clinic.upload([LONG, "two"], [f"{LONG} of page 2"]))
    stored = clinic.stored(f"records/ocr/{job['id']}.json")
    assert (stored["version"], [page["page"] for page in stored["pages"]]) == (1, [1, 2])
    first, second = stored["pages"][0]["lines"]
    assert (first["no"], first["text"], first["confidence"]) == (1, LONG, 1)
    assert (second["no"], second["text"]) == (2, "two")
    left, top, width, height = second["box"]
    assert 0 < left < left + width < 1
    assert first["box"][1] < top < top + height < 0.2


def test_file_is_processing_once_its_text_is_there(clinic: Clinic) -> None:
    file = clinic.upload(PAGE, PAGE)
    job = clinic.read(file)
    row = clinic.file(file)
    assert (row["status"], row["page_count"], str(row["processing_session_id"])) == ("processing", 2, str(job["id"]))
    assert row["ocr_spatial_data"] == f"records/ocr/{job['id']}.json"


@pytest.mark.parametrize(("mime_type", "data"), [("image/png", PNG), ("image/jpeg", JPEG)])
def test_image_is_read_at_once_by_textract(clinic: Clinic, mime_type: str, data: bytes) -> None:
    file = clinic.upload(data=data, mime_type=mime_type)
    clinic.scans(file, {"pages": [["one", "two"]], "confidence": 87.5})
    job = clinic.read(file)
    assert (job["status"], job["result"]["page_count"], job["result"]["estimated_tokens"]) == ("completed", 1, 102)
    lines = clinic.stored(clinic.file(file)["ocr_spatial_data"])["pages"][0]["lines"]
    assert [(line["no"], line["text"], line["confidence"]) for line in lines] == [(1, "one", 0.875), (2, "two", 0.875)]
    assert lines[1]["box"] == [0, 0.5, 1, 0.5]


def test_pdf_with_one_page_without_text_is_read_whole_by_textract(clinic: Clinic) -> None:
    file = clinic.upload(PAGE, ["19 characters, no m"])
    clinic.scans(file, {"pages": [["scanned 1"], ["scanned 2"]], "seconds": 1})
    job = clinic.read(file)
    assert (job["status"], job["attempts"], sorted(job["cursor"])) == ("pending", 0, ["begun", "textract"])
    [call] = [call for call in clinic.calls("textract") if call["name"] == "StartDocumentTextDetection"]
    assert call["request"]["ClientRequestToken"] == f"{job['id']}-1"
    again = clinic.step(job)
    assert (again["cursor"], again["scheduled_for"] - again["updated_at"] <= timedelta(seconds=10)) == (
        job["cursor"],
        True,
    )
    assert 9 < (job["scheduled_for"] - job["updated_at"]).total_seconds() <= 10
    done = clinic.stage.finish(str(job["id"]))
    assert (done["status"], done["result"]["page_count"]) == ("completed", 2)
    pages = clinic.stored(clinic.file(file)["ocr_spatial_data"])["pages"]
    assert [[line["text"] for line in page["lines"]] for page in pages] == [["scanned 1"], ["scanned 2"]]


def test_pages_of_20_characters_are_no_scan(clinic: Clinic) -> None:
    assert clinic.read(clinic.upload(["20 characters, not 1"]))["status"] == "completed"


def test_scan_of_one_page_in_a_pdf_needs_no_job_of_textracts(clinic: Clinic) -> None:
    file = clinic.upload([])
    clinic.scans(file, [["scanned"]])
    assert clinic.read(file)["status"] == "completed"


@pytest.mark.parametrize(
    ("pages", "lane", "job_lane"),
    [
        ([["x" * 90] * 40] * 10, "normal", "ai_queue_simple"),
        ([["x" * 30]] * 11, "heavy", "ai_queue_complex"),
    ],
)
def test_lane_of_the_passes_is_by_the_files_length(
    clinic: Clinic, pages: list[list[str]], lane: str, job_lane: str
) -> None:
    job = clinic.read(clinic.upload(*pages))
    child = clinic.passed(str(job["id"]), 1)
    assert (job["result"]["job_lane"], child["payload"]["job_lane"], child["lane"]) == (job_lane, job_lane, lane)
    assert child["timeout_ms"] == {"normal": 300_000, "heavy": 840_000}[lane]


# ---- what can't be read


def refused(clinic: Clinic, file: str, **payload: Any) -> dict[str, Any]:
    """Return the error of a file's job, which fails for good and leaves the file as it was."""
    before = clinic.file(file)
    job = clinic.read(file, **payload)
    assert (job["status"], job["attempts"], clinic.file(file)) == ("failed", 1, before)
    error: dict[str, Any] = job["error_details"]
    assert error["message"].startswith(f"{error['message'].split(':')[0]}: ")
    return error


def code(error: dict[str, Any]) -> tuple[str, str]:
    return error["type"].rpartition(".")[2], error["message"].split(":")[0]


def test_file_must_be_there_and_the_patients(clinic: Clinic) -> None:
    file = clinic.upload()
    assert code(refused(clinic, file, shell_file_id=str(uuid4()))) == ("NotFound", "NOT_FOUND")
    assert code(refused(clinic, file, raw_file="uploads/other")) == ("NotFound", "NOT_FOUND")
    assert code(refused(clinic, file, patient_id=clinic.patient())) == ("PatientMismatch", "PATIENT_MISMATCH")
    clinic.s3.delete_object(Bucket=clinic.bucket, Key=clinic.file(file)["raw_file"])
    assert code(refused(clinic, file)) == ("NotFound", "NOT_FOUND")


def test_patient_is_looked_at_before_the_type_and_the_type_before_the_object(clinic: Clinic) -> None:
    file = clinic.upload(mime_type="text/plain")
    clinic.s3.delete_object(Bucket=clinic.bucket, Key=clinic.file(file)["raw_file"])
    assert code(refused(clinic, file, patient_id=clinic.patient()))[1] == "PATIENT_MISMATCH"
    assert code(refused(clinic, file)) == ("UnsupportedMimeType", "UNSUPPORTED_MIME_TYPE")


@pytest.mark.parametrize(
    ("data", "mime_type"),
    [
        (b"no pdf", "application/pdf"),
        (b"", "application/pdf"),
        (JPEG, "image/png"),
        (b"", "image/jpeg"),
    ],
)
def test_file_that_is_not_of_its_type_is_unreadable(clinic: Clinic, data: bytes, mime_type: str) -> None:
    file = clinic.upload(data=data, mime_type=mime_type)
    assert code(refused(clinic, file)) == ("UnreadableFile", "UNREADABLE_FILE")


def test_file_that_is_too_large_is_refused(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_file, "MOST_BYTES_OF_IMAGE", len(PNG))
    assert clinic.read(clinic.upload())["status"] == "completed", "a PDF may be larger than an image"
    monkeypatch.setattr(read_file, "MOST_BYTES_OF_PDF", len(PNG))
    assert code(refused(clinic, clinic.upload())) == ("FileTooLarge", "FILE_TOO_LARGE")
    assert code(refused(clinic, clinic.upload(data=PNG + b".", mime_type="image/png")))[1] == "FILE_TOO_LARGE"
    image = clinic.upload(data=PNG, mime_type="image/png")
    clinic.scans(image, [["just small enough"]])
    assert clinic.read(image)["status"] == "completed"


def test_limits_are_those_of_the_contract() -> None:
    limits = (read_file.MOST_BYTES_OF_PDF, read_file.MOST_BYTES_OF_IMAGE, read_file.MOST_PAGES)
    assert limits == (52_428_800, 10_000_000, 500)


def test_pdf_of_501_pages_is_refused(clinic: Clinic) -> None:
    file = clinic.upload(data=pdf(*[["x"]] * 501))
    assert code(refused(clinic, file)) == ("TooManyPages", "TOO_MANY_PAGES")


def test_scan_that_textract_gives_up_is_refused(clinic: Clinic) -> None:
    file = clinic.upload([], [])
    clinic.scans(file, {"pages": [], "status": "FAILED"})
    job = clinic.stage.finish(clinic.submit(file))
    assert code(job["error_details"]) == ("OcrFailed", "OCR_FAILED")
    assert clinic.file(file)["status"] == "uploaded"


def test_scan_that_textract_reads_in_part_is_refused(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    file, look = clinic.upload([], []), ocr.look
    clinic.scans(file, [["page 1"], []])

    def look_in_part(*asked: Any) -> Any:
        scanned = look(*asked)
        return None if scanned is None else replace(scanned, is_partial=True)

    monkeypatch.setattr(ocr, "look", look_in_part)
    assert code(clinic.stage.finish(clinic.submit(file))["error_details"]) == ("OcrFailed", "OCR_FAILED")


def test_scan_that_failed_is_begun_again_by_a_redrive(clinic: Clinic) -> None:
    file = clinic.upload([], [])
    clinic.scans(file, {"pages": [], "status": "FAILED"})
    job = clinic.stage.finish(clinic.submit(file))
    clinic.scans(file, [["page 1"], ["page 2"]])
    redrive(clinic.stage, str(clinic.stage.dead_letter(str(job["id"]))["id"]))
    assert clinic.stage.finish(str(job["id"]))["result"]["page_count"] == 2


def test_large_scan_of_one_page_is_read_by_a_job_of_textracts(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_file, "MOST_BYTES_OF_IMAGE", 100)
    file = clinic.upload([])
    clinic.scans(file, [["page 1"]])
    assert clinic.stage.finish(clinic.submit(file))["status"] == "completed"
    assert "DetectDocumentText" not in {call["name"] for call in clinic.calls("textract")}


def test_image_that_textract_can_not_read_is_refused(clinic: Clinic) -> None:
    file = clinic.upload(data=PNG, mime_type="image/png")
    clinic.scans(file, {"pages": [["x"]], "status": "FAILED"})
    assert code(refused(clinic, file)) == ("OcrFailed", "OCR_FAILED")


# ---- submits


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "mine"}, "give no name"),
        ({"correlation_id": "mine"}, "takes its correlation_id from the payload"),
        ({"lane": "high"}, "contradicts the job_lane 'standard_queue'"),
    ],
)
def test_submit_that_contradicts_the_payload_is_refused(clinic: Clinic, fields: dict[str, Any], words: str) -> None:
    payload = {"shell_file_id": str(uuid4()), "patient_id": str(uuid4()), "raw_file": "x"}
    with pytest.raises(JobRefused, match=words):
        clinic.stage.submit("shell_file_processing", payload=payload, **fields)


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("notification_delivery", "deliver_notification"),
        ("data_migration", "import_table"),
        ("system_maintenance", "run_task"),
        ("audit_cleanup", "run_task"),
    ],
)
def test_other_names_of_the_document_are_the_engines_types(clinic: Clinic, name: str, stored: str) -> None:
    found = clinic.db.execute("SELECT job_type FROM signalbox.job_type_names WHERE name = %s", (name,)).fetchone()
    assert found == (stored,)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("report_generation", "export_table writes rows, and the pack compliance"),
        ("backup_operation", "AWS Backup"),
        ("semantic_processing", "no input, rule or table"),
        ("consent_verification", "no input, rule or table"),
        ("provider_verification", "no input, rule or table"),
    ],
)
def test_name_that_is_no_type_is_refused_with_its_reason(clinic: Clinic, name: str, reason: str) -> None:
    with pytest.raises(InvalidParameterValue, match=f"there is no job type '{name}': .*{reason}"):
        clinic.db.execute("SELECT signalbox.submit_job(%s)", (name,))


# ---- again


def test_file_that_is_submitted_again_has_a_new_session(clinic: Clinic) -> None:
    file = clinic.upload()
    first, second = clinic.read(file), clinic.read(file)
    assert clinic.file(file)["processing_session_id"] == second["id"]
    ended = clinic.step(clinic.passed(str(first["id"]), 1))
    assert (ended["status"], clinic.asked()) == ("cancelled", [])


def test_file_that_is_submitted_again_is_no_longer_completed(clinic: Clinic) -> None:
    file, other = clinic.upload(), clinic.upload()
    clinic.db.execute("UPDATE records.shell_files SET status = 'completed', processed_at = now()")
    clinic.read(file)
    assert (clinic.file(file)["status"], clinic.file(file)["processed_at"]) == ("processing", None)
    assert clinic.file(other)["status"] == "completed"


def test_twin_that_comes_late_does_not_set_the_file_back(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    file, read = clinic.upload(), read_file.read_file
    job_id = clinic.submit(file)

    def be_slower(*asked: Any) -> Any:
        monkeypatch.setattr(shell_file_processing, "read_file", read)
        lose(clinic, job_id)
        clinic.db.execute("UPDATE records.shell_files SET status = 'awaiting_review'")
        return read(*asked)

    monkeypatch.setattr(shell_file_processing, "read_file", be_slower)
    clinic.stage.step(job_id)
    assert (clinic.stage.status(job_id), clinic.file(file)["status"]) == ("completed", "awaiting_review")


def lose(clinic: Clinic, job_id: str) -> None:
    """Let another worker do a job whose worker is taken for lost."""
    expire = "UPDATE signalbox.jobs SET lease_expires_at = now() - interval '1 s' WHERE id = %s"
    clinic.db.execute(expire, (job_id,))
    clinic.stage.another().run("rescue_jobs", force=True)
    clinic.stage.another().step(job_id)


def test_twins_begin_one_session(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id = clinic.submit(clinic.upload())

    def be_slower(*asked: Any) -> Any:
        monkeypatch.setattr(shell_file_processing, "lock_session", lock_session)
        lose(clinic, job_id)
        return lock_session(*asked)

    monkeypatch.setattr(shell_file_processing, "lock_session", be_slower)
    clinic.stage.step(job_id)
    assert clinic.stage.status(job_id) == "completed"
    assert count(clinic.db, "signalbox.jobs WHERE job_type = 'ai_processing'") == 1


def test_attempt_that_finds_the_first_pass_writes_nothing(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    file = clinic.upload()
    monkeypatch.setattr(shell_file_processing, "_completed", lost_answer)
    job = clinic.read(file)
    assert (job["status"], job["attempts"]) == ("pending", 1)
    clinic.db.execute("UPDATE records.shell_files SET status = 'completed'")
    monkeypatch.undo()
    done = clinic.step(job)
    assert (done["status"], done["result"]["estimated_tokens"]) == ("completed", 117)
    assert (clinic.file(file)["status"], count(clinic.db, "signalbox.jobs")) == ("completed", 2)


def lost_answer(*_: object) -> None:
    """Act as a worker that ends after its commit."""
    raise Transient("lost")
