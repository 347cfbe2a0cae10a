"""A permit is read once for a job, what is doubtful is queued for review, and a failure says what was being done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from compliance.documents import document_processing, segments, store
from signalbox.budget import Budget
from signalbox.documents.model import Answer, Bedrock, Question, ask
from signalbox.testing.stage import Stage
from signalbox_laptop.stand_ins.aws_services import AwsServices
from tests.support.aws import shared_client
from tests.support.compliance_rows import Workforce, add, rows
from tests.support.pdfs import pdf
from tests.support.permit_texts import KEEP, MONITOR, REPORT, Desk, answer, said
from tests.support.stand_ins import calls_of


@pytest.fixture
def desk(stage: Stage, people: Workforce, services: AwsServices, moto: str, bucket: str) -> Desk:
    return Desk(stage, people, services, shared_client("s3", moto), bucket)


def test_native_permit_becomes_obligations(desk: Desk) -> None:
    document = desk.upload([MONITOR, REPORT], ["1.3 The operator shall"])
    desk.told(answer(said(MONITOR, is_subjective=True, subjective_phrases=["as needed"]), said(REPORT, frequency=None)))
    job = desk.read(document)
    assert job["result"] == {
        "status": "COMPLETED",
        "extraction_id": str(job["id"]),
        "obligations_extracted": 2,
        "flagged_for_review": 0,
        "ocr_required": False,
        "ocr_confidence": None,
    }
    columns = ("original_text", "frequency", "status", "review_status", "subjective_phrases", "created_by")
    kept = rows(desk.people.db, "obligations", *columns)
    assert [(*row[:5], str(row[5])) for row in kept] == [
        (MONITOR, "MONTHLY", "PENDING", "NOT_REQUIRED", ["as needed"], desk.people.owner_id),
        (REPORT, None, "PENDING", "NOT_REQUIRED", [], desk.people.owner_id),
    ]
    assert desk.asked() == [f"{MONITOR}\n\n{REPORT}\n\n1.3 The operator shall"]
    text = desk.s3.get_object(Bucket=desk.bucket, Key=desk.key(document, "extracted_text.txt"))["Body"].read().decode()
    assert rows(desk.people.db, "documents", "extracted_text", "extraction_status") == [(text, "COMPLETED")]
    [(log, segments)] = rows(desk.people.db, "extraction_logs", "metadata", "segments_processed")
    assert (log["rules_library_matches"], log["ai_extractions"], len(log["chunks"]), segments) == (0, 2, 1, 3)
    [note] = rows(desk.people.db, "notifications", "channel", "severity", "entity_type", "message", "dedupe_key")
    assert note[:3] == ("IN_APP", "INFO", "DOCUMENT")
    assert note[3] == '"Permit" has been processed. 2 obligations extracted.'
    assert note[4] == f"DOCUMENT_PROCESSING:{document}:{job['id']}:{desk.people.owner_id}:IN_APP"


@pytest.mark.parametrize(("confidence", "items"), [(0.85, []), (0.849, ["LOW_CONFIDENCE"])])
def test_low_confidence_is_reviewed(desk: Desk, confidence: float, items: list[str]) -> None:
    desk.told(answer(said(MONITOR, confidence_score=confidence)))
    job = desk.read(desk.upload([MONITOR]))
    assert (desk.items(), job["result"]["flagged_for_review"]) == (items, len(items))
    assert job["result"]["status"] == "COMPLETED"


def test_rule_keeps_its_segment_from_the_model(desk: Desk) -> None:
    db = desk.people.db
    rule = {"module_code": "MODULE_1", "version": "2.1", "extraction": {"summary": "Monitor", "frequency": "MONTHLY"}}
    add(db, "extraction_rules", **rule, pattern="MONITOR emissions", confidence=0.95)
    add(db, "extraction_rules", **rule, pattern="monitor", confidence=0.90)
    add(db, "extraction_rules", **rule, pattern="report", confidence=0.899)
    add(db, "extraction_rules", **rule, pattern="keep", confidence=1, is_active=False)
    add(db, "extraction_rules", **rule | {"module_code": "MODULE_2"}, pattern="keep", confidence=1)
    add(db, "extraction_rules", **rule, pattern="(", confidence=0.99)
    add(db, "extraction_rules", **rule | {"extraction": {"frequency": "YEARLY"}}, pattern="keep", confidence=1)
    desk.told(answer(said(REPORT)))
    desk.read(desk.upload([MONITOR, REPORT, KEEP]))
    assert desk.asked() == [f"{REPORT}\n\n{KEEP}"]
    made = rows(db, "obligations", "original_text", "confidence_score", "summary", order="original_text")
    assert [(row[0], float(row[1]), row[2]) for row in made] == [(MONITOR, 0.95, "Monitor"), (REPORT, 0.95, "Do it")]
    [(version, warnings)] = rows(db, "extraction_logs", "rule_library_version", "warnings")
    assert version == "2.1"
    assert ["pattern is wrong" in warnings[1], "wrong, frequency" in warnings[0]] == [True, True]


def test_slow_rule_gives_way_to_others_and_the_model(desk: Desk) -> None:
    add(desk.people.db, "extraction_rules", module_code="MODULE_1", pattern="(a|a)+$", confidence=0.95)
    add(desk.people.db, "extraction_rules", module_code="MODULE_1", pattern="keep", confidence=0.9)
    slow = [f"1.{number} {'a' * 60}!" for number in range(5)]
    desk.told(answer(said(MONITOR)))
    assert desk.read(desk.upload([*slow, KEEP]))["result"]["status"] == "COMPLETED"
    [(warnings,)] = rows(desk.people.db, "extraction_logs", "warnings")
    assert (desk.live(), desk.asked()) == ([MONITOR, KEEP], ["\n\n".join(slow)])
    assert warnings[0].endswith("timed out 3 times")


@pytest.mark.parametrize(
    ("pages", "fields"),
    [([[MONITOR]], {"is_native_pdf": False}), ([[]], {}), ([[MONITOR]], {"ocr_confidence": 0.79})],
)
def test_scan_is_read_by_textract(desk: Desk, pages: list[list[str]], fields: dict[str, Any]) -> None:
    document = desk.upload(*pages, **fields)
    desk.scans(**{document: {"pages": [[KEEP]], "confidence": 80}})
    desk.told(answer(said(KEEP)))
    job = desk.read(document)
    assert (desk.asked(), desk.items()) == ([KEEP], [])
    assert (job["result"]["ocr_required"], job["result"]["ocr_confidence"]) == (True, 0.8)
    [started, *_] = calls_of(desk.services.addresses["textract"])
    assert started["request"]["ClientRequestToken"] == str(job["id"])


def test_poor_scan_goes_on_with_an_item(desk: Desk) -> None:
    document = desk.upload([MONITOR], is_native_pdf=False)
    desk.scans(**{document: {"pages": [[KEEP]], "confidence": 79}})
    desk.told(answer(said(KEEP)))
    assert desk.read(document)["result"]["status"] == "COMPLETED"
    assert (desk.items(), desk.live()) == (["OCR_LOW_CONFIDENCE"], [KEEP])


def test_bad_items_are_reviewed_and_good_ones_kept(desk: Desk) -> None:
    bad = [{"nonsense": 1}, "text", said(KEEP, confidence_score=1.1), said(KEEP, frequency="YEARLY")]
    desk.told(answer(said(MONITOR), *bad))
    job = desk.read(desk.upload([MONITOR]))
    assert (job["result"]["status"], desk.live(), desk.items()) == ("REVIEW_REQUIRED", [MONITOR], ["VALIDATION_ERROR"])
    [(data,)] = rows(desk.people.db, "review_queue_items", "original_data")
    assert [fault["fields"] for fault in data["faults"]][2:] == [["confidence_score"], ["frequency"]]


def test_permit_without_obligations_is_reviewed(desk: Desk) -> None:
    document = desk.upload([MONITOR])
    desk.told(answer())
    assert desk.read(document)["result"]["status"] == "ZERO_OBLIGATIONS"
    assert (desk.status(document), desk.items()) == (("ZERO_OBLIGATIONS", None), ["ZERO_OBLIGATIONS"])


def test_cut_answer_halves_the_chunk(desk: Desk) -> None:
    desk.told(
        answer(stop_reason="max_tokens"),
        answer(said(MONITOR), contains=MONITOR),
        answer(said(REPORT), contains=REPORT),
    )
    desk.read(desk.upload([MONITOR, REPORT]))
    assert (desk.asked()[1:], desk.live()) == ([MONITOR, REPORT], [MONITOR, REPORT])
    assert len(set(rows(desk.people.db, "obligations", "chunk_sha256"))) == 1


def test_completed_document_is_not_read_again(desk: Desk) -> None:
    document = desk.upload([MONITOR])
    desk.told(answer(said(MONITOR), times=0))
    first = desk.read(document)["result"]
    assert desk.read(document)["result"] == first
    assert len(desk.asked()) == 1
    again = desk.read(document, force_reprocess=True)["result"]
    assert (again["extraction_id"] != first["extraction_id"], desk.live()) == (True, [MONITOR])


def test_new_reading_keeps_what_people_have_reviewed(desk: Desk) -> None:
    document = desk.upload([MONITOR])
    confirmed = {"document_id": document, "extraction_id": document, "review_status": "CONFIRMED"}
    desk.people.obligation(original_text=MONITOR, **confirmed)
    desk.people.obligation(original_text="gone", **confirmed | {"review_status": "PENDING"})
    desk.people.obligation(original_text="by hand", document_id=document)
    desk.people.obligation(original_text="elsewhere", extraction_id=document)
    desk.told(answer(said(MONITOR), said(KEEP)))
    assert desk.read(document)["result"]["obligations_extracted"] == 1
    assert desk.live() == sorted([MONITOR, KEEP, "by hand", "elsewhere"])


def test_incremental_reading_asks_about_new_chunks_only(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments.join, "__defaults__", (len(REPORT),))
    document = desk.upload([MONITOR, REPORT])
    desk.told(*(answer(said(text), contains=text, times=0) for text in (MONITOR, REPORT, KEEP)))
    desk.read(document)
    desk.s3.put_object(Bucket=desk.bucket, Key=desk.key(document), Body=pdf([MONITOR, KEEP]))
    again = desk.read(document, force_reprocess=True, extraction_mode="INCREMENTAL")["result"]
    assert desk.asked() == [MONITOR, REPORT, KEEP]
    assert (again["status"], again["obligations_extracted"], desk.live()) == ("COMPLETED", 1, [MONITOR, KEEP])
    same = desk.read(document, force_reprocess=True, extraction_mode="INCREMENTAL")["result"]
    assert (same["status"], len(desk.asked()), desk.live()) == ("COMPLETED", 3, [MONITOR, KEEP])


def test_missing_file_fails_the_document_without_an_item(desk: Desk) -> None:
    document = desk.upload()
    job = desk.read(document)
    assert (job["status"], desk.status(document)) == ("failed", ("FAILED", "File not found"))
    assert (desk.items(), desk.stage.dead_letter(str(job["id"]))["failure_reason"]) == ([], "permanent")


@pytest.mark.parametrize(
    ("told", "status"),
    [
        ([answer(status=500, times=0)], "EXTRACTION_FAILED"),
        ([answer(stop_reason="content_filtered")], "EXTRACTION_FAILED"),
        ([answer(times=0, output={"items": []})], "EXTRACTION_FAILED"),
    ],
)
def test_failing_model_fails_the_extraction(desk: Desk, told: list[dict[str, Any]], status: str) -> None:
    document = desk.upload([MONITOR])
    desk.told(*told)
    job = desk.read(document)
    assert (job["status"], desk.status(document)[0], desk.items()) == ("failed", status, [status])
    desk.told(answer(said(MONITOR)))
    desk.stage.operate("redrive", ids=[str(desk.stage.dead_letter(str(job["id"]))["id"])], reason="mended", by="me")
    assert desk.stage.finish(str(job["id"]))["result"]["status"] == "COMPLETED"
    assert desk.status(document) == ("COMPLETED", None)


def test_failing_scan_fails_the_ocr_once(desk: Desk) -> None:
    document = desk.upload([MONITOR], is_native_pdf=False)
    desk.scans(**{document: {"pages": [[KEEP]], "status": "FAILED"}})
    job = desk.read(document)
    assert (desk.status(document)[0], desk.items()) == ("OCR_FAILED", ["OCR_FAILED"])
    desk.stage.operate("redrive", ids=[str(desk.stage.dead_letter(str(job["id"]))["id"])], reason="again", by="me")
    assert desk.stage.finish(str(job["id"]))["status"] == "failed"
    assert desk.items() == ["OCR_FAILED"]


def crash_once(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, *, after: bool) -> None:
    """Have a function raise once, before or after it has done its work."""
    original: Callable[..., Any] = getattr(owner, name)
    left = ["crash"]

    def crash(*args: Any, **named: Any) -> Any:
        answer = original(*args, **named) if after or not left else None
        if left:
            left.pop()
            raise ConnectionError("as the test wants it")
        return answer

    monkeypatch.setattr(owner, name, crash)


@pytest.mark.parametrize(
    ("owner", "name", "after"),
    [
        (document_processing, "read_answer", True),
        (store, "_tell", True),
        (store, "finish", False),
        (store, "finish", True),
    ],
)
def test_crash_writes_nothing_twice(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, after: bool
) -> None:
    crash_once(monkeypatch, owner, name, after=after)
    document = desk.upload([MONITOR])
    desk.told(answer(said(MONITOR, confidence_score=0.5), times=0))
    job = desk.read(document, force_reprocess=True)
    assert (job["result"]["status"], desk.live(), desk.items()) == ("COMPLETED", [MONITOR], ["LOW_CONFIDENCE"])
    assert len(rows(desk.people.db, "obligations", "id")) == len(rows(desk.people.db, "notifications", "id")) == 1
    assert len(desk.asked()) == (2 if name == "read_answer" else 1)


def test_worker_lost_after_the_end_fails_no_document(desk: Desk) -> None:
    document = desk.upload([MONITOR])
    desk.told(answer(said(MONITOR)))
    job = desk.read(document)
    desk.people.db.execute("UPDATE compliance.documents SET extraction_status = 'PROCESSING'")
    desk.people.db.execute(
        "SELECT compliance.document_failed(%s, %s::jsonb, 'lost', NULL)",
        (job["id"], f'{{"document_id": "{document}"}}'),
    )
    assert (desk.status(document)[0], desk.items()) == ("PROCESSING", [])


@pytest.mark.parametrize(("scan", "status"), [(True, "OCR_FAILED"), (False, "EXTRACTION_FAILED")])
def test_lost_worker_fails_what_it_was_doing(desk: Desk, scan: bool, status: str) -> None:
    document = desk.upload([MONITOR], is_native_pdf=not scan)
    desk.scans(**{document: {"pages": [[KEEP]], "seconds": 60}})
    job = desk.submit(document)
    for _ in range(2):
        desk.stage.step(job)
    statement = "SELECT compliance.document_failed(%s, payload, 'lost', %s) FROM signalbox.jobs WHERE id = %s"
    error = Jsonb({"type": "WorkerLost", "message": "the worker vanished"})
    desk.people.db.execute(statement, (job, error, job))
    desk.people.db.execute(statement, (job, error, job))
    assert (desk.status(document), desk.items()) == ((status, "the worker vanished"), [status])


def test_two_readings_at_once_leave_one_set(desk: Desk) -> None:
    document = desk.upload([MONITOR])
    desk.told(answer(said(MONITOR), times=0))
    ids = [desk.submit(document, force_reprocess=True) for _ in range(2)]
    for _ in range(3):
        desk.stage.make_due(*ids)
        desk.stage.work(*ids)
    assert desk.stage.statuses(*ids) == ["completed"] * 2
    assert (desk.live(), len(rows(desk.people.db, "extraction_logs", "id"))) == ([MONITOR], 2)


def test_text_that_postgres_refuses_is_cleaned(desk: Desk) -> None:
    desk.told(answer(said("nul \0", summary="\0"), {"text": "nul \0"}))
    assert desk.read(desk.upload([MONITOR]))["result"]["status"] == "REVIEW_REQUIRED"
    assert desk.live() == ["nul \ufffd"]


@pytest.mark.parametrize(
    ("fields", "status"), [({"deleted_at": "2026-01-01"}, "failed"), ({"uploaded_by": None}, "completed")]
)
def test_deleted_document_and_missing_uploader(desk: Desk, fields: dict[str, Any], status: str) -> None:
    document = desk.upload([MONITOR], **fields)
    desk.told(answer(said(MONITOR)))
    assert desk.read(document)["status"] == status
    assert (rows(desk.people.db, "notifications", "id"), desk.items()) == ([], [])


def test_rows_of_another_company_stay_as_they_are(desk: Desk) -> None:
    other = Workforce.make(desk.people.db, name="Other")
    document = desk.upload([MONITOR], uploaded_by=other.owner_id)
    other.obligation(original_text="theirs", document_id=document, extraction_id=document)
    desk.told(answer(said(MONITOR)))
    desk.read(document)
    assert desk.live() == [MONITOR, "theirs"]
    assert rows(desk.people.db, "notifications", "id") == []


@pytest.mark.parametrize(("pages", "seconds"), [(49, 30), (50, 300)])
def test_large_document_waits_longer_for_the_model(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, pages: int, seconds: int
) -> None:
    waited: list[float] = []

    def ask_and_note(bedrock: Bedrock, question: Question, budget: Budget) -> Answer:
        waited.append(question.most_seconds)
        return ask(bedrock, question, budget)

    monkeypatch.setattr(document_processing, "ask", ask_and_note)
    desk.told(answer(said(MONITOR)))
    desk.read(desk.upload([MONITOR], page_count=pages))
    assert waited == [seconds]
