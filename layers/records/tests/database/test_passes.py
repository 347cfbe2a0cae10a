"""Each pass asks the model, checks its answer and writes once; a cut answer gets more room, or is about less text."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from records.passes import answers, later_pass, pass1, pass2
from signalbox.packs.outcome import Transient
from signalbox.testing.rows import count
from tests.support.clinic import ANA, ASTHMA, PAGE, SALBUTAMOL, Clinic, coded, found, narrated

CUT, FULL = {"stop_reason": "max_tokens"}, {"stop_reason": "model_context_window_exceeded"}
LONG = [["x" * 90] * 45] * 12  # 12 pages of 4,050 characters: 11 fit into a piece
TOKENS = ("input_tokens", "output_tokens")
ROWS = ("patient_conditions", "patient_medications", "clinical_narratives")
TABLES = ("pass1_entity_metrics", "patient_conditions", "clinical_narratives")


def code(job: dict[str, Any]) -> str:
    assert (job["status"], job["attempts"]) == ("failed", 1)
    return str(job["error_details"]["message"].split(":")[0])


# ---- pass 1


def test_long_file_is_asked_about_in_pieces(clinic: Clinic) -> None:
    second = found(SALBUTAMOL | {"page": 12}, subjects=[{"name": "Eva Roth", "date_of_birth": None, "page": 12}])
    job = clinic.begun(clinic.upload(*LONG), found(ASTHMA), second)
    begun = clinic.step(job)
    assert (begun["status"], begun["progress_message"]) == ("pending", "11 of 12 pages are read")
    assert {name: begun["cursor"][name] for name in ("piece", "page", "ends", "long")} == {
        "piece": 1,
        "page": 11,
        "ends": [],
        "long": 0,
    }
    session = str(job["payload"]["processing_session_id"])
    assert clinic.stored(f"records/pass1/{session}/0.json")["answer"]["entities"] == [ASTHMA]
    done = clinic.step(job)
    assert (done["status"], done["result"]["entities"]) == ("completed", 2)
    [metrics] = clinic.rows("pass1_entity_metrics")
    assert [entity["page"] for entity in metrics["entities"]] == [1, 12]
    [audit] = clinic.rows("profile_classification_audit")
    assert [reason["subject"] for reason in audit["reasons"]] == [2]
    texts = [asked["messages"][0]["content"][0]["text"] for asked in clinic.asked()]
    assert ["[page 11]" in text for text in texts] == [True, False]
    assert [metrics[name] for name in TOKENS] == [done["result"][name] for name in TOKENS]
    assert metrics["processing_ms"] >= 0


def test_attempt_that_finds_its_pieces_answer_does_not_ask_again(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = clinic.begun(clinic.upload(), found(ASTHMA))
    monkeypatch.setattr(pass1, "lock_session", lost)
    assert clinic.step(job)["status"] == "pending"
    monkeypatch.undo()
    done = clinic.step(job)
    assert (done["status"], len(clinic.asked())) == ("completed", 1)
    assert all(done["result"][name] > 0 for name in TOKENS)


def lost(*_: object) -> None:
    raise Transient("the database is away")


def test_answer_about_other_pages_is_asked_for_again(clinic: Clinic) -> None:
    job = clinic.begun(clinic.upload(), found(ASTHMA))
    other = {"pages": [0, 2], "answer": found()["output"]}
    clinic.store(f"records/pass1/{job['payload']['processing_session_id']}/0.json", other)
    assert (clinic.step(job)["result"]["entities"], len(clinic.asked())) == (1, 1)


def test_pieces_that_a_twin_has_divided_in_another_way_are_asked_about_anew(clinic: Clinic) -> None:
    job = clinic.begun(clinic.upload(*LONG), found(ASTHMA), found(SALBUTAMOL), found(ASTHMA))
    clinic.step(job)
    first = f"records/pass1/{job['payload']['processing_session_id']}/0.json"
    clinic.store(first, {"pages": [0, 6], "answer": found(ASTHMA, ASTHMA)["output"]})  # pages 7 to 11 would be lost
    assert clinic.step(job)["cursor"]["piece"] == 0
    clinic.step(job)
    assert (clinic.step(job)["result"]["entities"], clinic.stored(first)["pages"]) == (2, [0, 11])


@pytest.mark.parametrize("number", [1, 2, 3])
def test_answer_that_was_cut_is_asked_for_once_more_with_more_room(clinic: Clinic, number: int) -> None:
    said = [found(ASTHMA), coded([1]), narrated()]
    job = clinic.begun(clinic.upload(), *said[: number - 1], said[number - 1] | CUT, said[number - 1], number=number)
    begun = clinic.step(job)
    assert (begun["status"], begun["cursor"]["long"], begun["attempts"]) == ("pending", 1, 0)
    assert clinic.step(job)["status"] == "completed"
    assert [asked["inferenceConfig"]["maxTokens"] for asked in clinic.asked()[-2:]] == [4096, 16_384]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_tokens_of_all_answers_are_counted(clinic: Clinic, number: int) -> None:
    said = [found(ASTHMA), coded([1]), narrated()]
    last = said[number - 1]
    job = clinic.begun(clinic.upload(), *said[: number - 1], number=number)
    clinic.answers(last | {"output": {}}, last | CUT, last)
    assert [clinic.step(job)["status"] for _ in range(3)] == ["pending", "pending", "completed"]
    often = clinic.stage.job(str(job["id"]))["result"]["input_tokens"]
    other = clinic.begun(clinic.upload(), *said, number=number)
    assert often == 3 * clinic.step(other)["result"]["input_tokens"]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_answer_that_is_cut_twice_is_truncated_for_good(clinic: Clinic, number: int) -> None:
    answers = [found(ASTHMA), coded(), narrated()]
    cut = [answers[number - 1] | CUT] * 2
    job = clinic.begun(clinic.upload(), *answers[: number - 1], *cut, number=number)
    assert clinic.step(job)["status"] == "pending"
    assert code(clinic.step(job)) == "OUTPUT_TRUNCATED"


def test_text_that_has_no_room_is_halved(clinic: Clinic) -> None:
    job = clinic.begun(clinic.upload(PAGE, PAGE, PAGE), found(**FULL), found(ASTHMA), found(SALBUTAMOL, ASTHMA))
    assert clinic.step(job)["cursor"]["ends"] == [2, 3]
    assert clinic.step(job)["cursor"]["ends"] == [3]
    assert clinic.step(job)["result"]["entities"] == 3
    texts = [asked["messages"][0]["content"][0]["text"] for asked in clinic.asked()]
    pages = [[page for page in (1, 2, 3) if f"[page {page}]" in text] for text in texts]
    assert pages == [[1, 2, 3], [1, 2], [3]]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_text_that_can_not_be_halved_is_truncated(clinic: Clinic, number: int) -> None:
    answers = [found(ASTHMA), coded(), narrated()]
    job = clinic.begun(clinic.upload(), *answers[: number - 1], answers[number - 1] | FULL, number=number)
    assert code(clinic.step(job)) == "OUTPUT_TRUNCATED"


@pytest.mark.parametrize("reason", ["content_filtered", "guardrail_intervened"])
def test_model_that_refuses_fails_the_pass(clinic: Clinic, reason: str) -> None:
    job = clinic.begun(clinic.upload(), found(stop_reason=reason))
    assert code(clinic.step(job)) == "MODEL_REFUSED"
    assert reason in clinic.stage.job(str(job["id"]))["error_details"]["message"]


@pytest.mark.parametrize(
    "output",
    [
        {"entities": []},
        {"entities": [ASTHMA | {"type": "diagnosis"}], "subjects": []},
        {"entities": [ASTHMA | {"page": 0}], "subjects": []},
        {"entities": [ASTHMA | {"confidence": 1.01}], "subjects": []},
        {"entities": [ASTHMA | {"confidence": "0.9"}], "subjects": []},
        {"entities": [ASTHMA | {"text": "a\0b"}], "subjects": []},
        {"entities": [], "subjects": [ANA | {"date_of_birth": "1981-02-29"}]},
        {"entities": [], "subjects": [ANA | {"date_of_birth": "29.02.1980"}]},
        {"entities": [], "subjects": [ANA | {"date_of_birth": "19800229"}]},
        {"entities": [], "subjects": [ANA | {"date_of_birth": "1980-W09-5"}]},
        {"entities": [], "subjects": [ANA | {"date_of_birth": "1980-02-29T00:00:00"}]},
        {"entities": [], "subjects": [ANA | {"name": None}]},
    ],
)
def test_malformed_entities_are_asked_for_again_in_five_minutes(clinic: Clinic, output: dict[str, Any]) -> None:
    job = clinic.begun(clinic.upload(), {"schema": "records_pass1", "output": output})
    failed = clinic.step(job)
    assert (failed["status"], failed["attempts"]) == ("pending", 1)
    assert 239 <= (failed["scheduled_for"] - failed["updated_at"]).total_seconds() <= 361
    assert failed["error_details"]["message"].startswith("the model's answer is malformed at ")


@pytest.mark.parametrize("reason", ["malformed_model_output", "malformed_tool_use"])
def test_output_that_the_model_itself_calls_malformed_is_asked_for_again(clinic: Clinic, reason: str) -> None:
    job = clinic.begun(clinic.upload(), found(ASTHMA, stop_reason=reason), found(ASTHMA))
    assert clinic.step(job)["status"] == "pending"
    assert clinic.step(job)["status"] == "completed"


def test_pass_fails_after_four_attempts_five_minutes_apart(clinic: Clinic) -> None:
    job = clinic.begun(clinic.upload(), {"schema": "records_pass1", "status": 503, "times": 0})
    for _ in range(3):
        waiting = clinic.step(job)
        assert 239 <= (waiting["scheduled_for"] - waiting["updated_at"]).total_seconds() <= 361
    assert clinic.step(job)["status"] == "failed"
    assert clinic.stage.dead_letter(str(job["id"]))["final_error_message"]
    assert clinic.file(str(job["payload"]["shell_file_id"]))["status"] == "processing"


# ---- pass 2


def item(entity_no: int, **fields: Any) -> dict[str, Any]:
    return {"entity_no": entity_no, "name": "x", "confidence": 0.5} | fields


@pytest.mark.parametrize(
    ("conditions", "medications"),
    [
        ([item(0)], []),
        ([item(3)], []),
        ([item(2)], []),  # a medication
        ([item(1), item(1)], []),
        ([], [item(1)]),
        ([item(1, onset_date="2011")], []),
        ([item(1, onset_date="2011-02-29")], []),
        ([item(1, confidence=-0.1)], []),
        ([item(1, name="")], []),
        ([item(1, code="a\0b")], []),
        ([], [item(2, started_on="yesterday")]),
        ([], [item(2, dose=100)]),
    ],
)
def test_malformed_rows_are_asked_for_again(clinic: Clinic, conditions: Any, medications: Any) -> None:
    answers = (found(ASTHMA, SALBUTAMOL), coded(conditions, medications), coded([1], [2]))
    job = clinic.begun(clinic.upload(), *answers, number=2)
    assert clinic.step(job)["status"] == "pending"
    assert clinic.step(job)["result"]["conditions"] == 1


def test_rows_are_asked_for_by_their_entities_places(clinic: Clinic) -> None:
    other = {"type": "other", "text": "Haemoglobin 12.9", "page": 1, "confidence": 0.9}
    clinic.answers(found(other, ASTHMA), coded([2]), narrated())
    session = clinic.processed(clinic.upload())
    assert clinic.passed(session, 2)["result"]["conditions"] == 1
    text = clinic.asked()[1]["messages"][0]["content"][0]["text"]
    assert ['"entity_no": 2' in text, "Haemoglobin" in text] == [True, False]


def test_rows_stay_superseded_as_they_were(clinic: Clinic) -> None:
    file = clinic.upload()
    clinic.answers(*[found(ASTHMA, SALBUTAMOL), coded([1], [2]), narrated()] * 3)
    sessions = [clinic.processed(file) for _ in range(2)]
    before = {table: clinic.rows(table)[0]["superseded_at"] for table in ROWS}
    clinic.processed(file)
    for table, moment in before.items():
        [first] = [row for row in clinic.rows(table) if str(row["processing_session_id"]) == sessions[0]]
        assert first["superseded_at"] == moment is not None


def test_rows_of_earlier_sessions_are_superseded(clinic: Clinic) -> None:
    file, other = clinic.upload(), clinic.upload()
    answers = [found(ASTHMA, SALBUTAMOL), coded([1], [2]), narrated()]
    clinic.answers(*answers, *answers, *answers)
    first, elsewhere, second = clinic.processed(file), clinic.processed(other), clinic.processed(file)
    for table in ROWS:
        live = {str(row["processing_session_id"]): row["superseded_at"] is None for row in clinic.rows(table)}
        assert live == {first: False, elsewhere: True, second: True}, table


def test_file_without_findings_has_no_rows_and_a_narrative(clinic: Clinic) -> None:
    clinic.answers(found(), coded(), narrated("Nothing was found."))
    session = clinic.processed(clinic.upload())
    assert clinic.passed(session, 2)["result"]["conditions"] == 0
    assert clinic.passed(session, 3)["status"] == "completed"


# ---- pass 3


def sources(clinic: Clinic) -> list[dict[str, str]]:
    kinds = (("condition", "patient_conditions"), ("medication", "patient_medications"))
    return [{"kind": kind, "id": str(row["id"])} for kind, table in kinds for row in clinic.rows(table)]


def test_narrative_names_its_sources(clinic: Clinic) -> None:
    job = clinic.begun(clinic.upload(), found(ASTHMA, SALBUTAMOL), coded([1], [2]), number=3)
    clinic.answers(narrated(sources=sources(clinic)))
    assert clinic.step(job)["status"] == "completed"
    [narrative] = clinic.rows("clinical_narratives")
    assert narrative["sources"] == sources(clinic)
    text = clinic.asked()[-1]["messages"][0]["content"][0]["text"]
    assert all(source["id"] in text for source in sources(clinic))


def test_source_that_is_none_of_the_sessions_is_malformed(clinic: Clinic) -> None:
    clinic.answers(found(ASTHMA), coded([1]), narrated())
    clinic.processed(clinic.upload())
    [elsewhere] = sources(clinic)
    job = clinic.begun(clinic.upload(), found(ASTHMA), coded([1]), number=3)
    [own] = [one for one in sources(clinic) if one != elsewhere]
    wrong = [[elsewhere], [own | {"kind": "medication"}], [{"kind": "condition", "id": "1"}]]
    clinic.answers(*[narrated(sources=one) for one in wrong])
    assert [clinic.step(job)["status"] for _ in wrong] == ["pending"] * 3
    assert "sources.#.id" in clinic.stage.job(str(job["id"]))["error_details"]["message"]


def test_row_of_the_files_earlier_session_is_no_source(clinic: Clinic) -> None:
    file = clinic.upload()
    clinic.answers(found(ASTHMA), coded([1]), narrated())
    clinic.processed(file)
    [earlier] = sources(clinic)
    job = clinic.begun(file, found(ASTHMA), coded([1]), number=3)
    clinic.answers(narrated(sources=[earlier]))
    assert clinic.step(job)["status"] == "pending"
    assert earlier["id"] not in clinic.asked()[-1]["messages"][0]["content"][0]["text"]


def test_ids_of_sources_are_kept_in_lower_case(clinic: Clinic) -> None:
    job = clinic.begun(clinic.upload(), found(ASTHMA), coded([1]), number=3)
    [own] = sources(clinic)
    clinic.answers(narrated(sources=[own | {"id": own["id"].upper()}]))
    assert clinic.step(job)["status"] == "completed"
    assert clinic.rows("clinical_narratives")[0]["sources"] == [own]


def test_narrative_that_is_named_is_superseded_if_it_is_the_patients(clinic: Clinic) -> None:
    patient = clinic.patient()
    clinic.answers(*[found(ASTHMA), coded([1]), narrated()] * 2)
    clinic.processed(clinic.upload(patient_id=patient))
    clinic.processed(clinic.upload())
    own, others = clinic.rows("clinical_narratives")
    job = clinic.begun(clinic.upload(patient_id=patient), found(ASTHMA), coded([1]), number=3)
    for narrative, outcome in ((others["id"], "NOT_FOUND"), (uuid4(), "NOT_FOUND"), (own["id"], "")):
        clinic.answers(narrated())
        asked = len(clinic.asked())
        named = job["payload"] | {"narrative_id": str(narrative)}
        done = clinic.step({"id": clinic.stage.submit("ai_processing", payload=named)})
        assert f"narrative:{narrative}" in done["tags"]
        assert (code(done) if outcome else done["status"]) == (outcome or "completed")
        assert len(clinic.asked()) - asked == (0 if outcome else 1)
    [superseded] = [row for row in clinic.rows("clinical_narratives") if row["superseded_at"]]
    assert superseded["id"] == own["id"]


# ---- once, and of this session alone


@pytest.mark.parametrize("number", [1, 2, 3])
def test_second_submit_of_a_pass_answers_what_the_tables_have(clinic: Clinic, number: int) -> None:
    job = clinic.begun(clinic.upload(), found(ASTHMA), coded([1]), narrated(), number=number)
    first = clinic.step(job)["result"]
    asked = len(clinic.asked())
    again = clinic.step({"id": clinic.stage.submit("ai_processing", payload=job["payload"])})
    assert again["result"] == first | dict.fromkeys(TOKENS, 0)
    assert (len(clinic.asked()), count(clinic.db, "signalbox.jobs WHERE job_type = 'ai_processing'")) == (
        asked,
        number + (2 if number < 3 else 1),
    )


@pytest.mark.parametrize("number", [1, 2, 3])
def test_twins_write_once(clinic: Clinic, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    said = [found(ASTHMA), coded([1]), narrated()]
    job = clinic.begun(clinic.upload(), *said, said[number - 1], number=number)
    room: Any = pass1 if number == 1 else later_pass
    twin, check = clinic.stage.submit("ai_processing", payload=job["payload"]), answers.check

    def be_slower(*asked: Any) -> Any:
        monkeypatch.setattr(room, "check", check)
        clinic.stage.another().step(twin)
        return check(*asked)

    monkeypatch.setattr(room, "check", be_slower)
    done = clinic.step(job)
    assert [done["status"], clinic.stage.status(twin)] == ["completed"] * 2
    assert done["result"]["input_tokens"] == 0
    assert [count(clinic.db, f"records.{table}") for table in TABLES] == [1, int(number > 1), int(number > 2)]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_pass_of_a_session_that_ends_while_the_model_is_asked_writes_nothing(
    clinic: Clinic, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = clinic.upload()
    job = clinic.begun(file, found(ASTHMA), coded([1]), narrated(), number=number)
    room: Any = pass1 if number == 1 else later_pass
    check = room.check
    before = [count(clinic.db, f"records.{table}") for table in TABLES]

    def be_slower(*asked: Any) -> Any:
        clinic.db.execute("UPDATE records.shell_files SET processing_session_id = gen_random_uuid()")
        return check(*asked)

    monkeypatch.setattr(room, "check", be_slower)
    assert clinic.step(job)["status"] == "cancelled"
    assert [count(clinic.db, f"records.{table}") for table in TABLES] == before


def test_file_and_its_classification_are_locked_while_a_pass_writes(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = clinic.begun(clinic.upload(), found(ASTHMA), coded([1]), number=2)
    write = pass2.SQL["write_conditions"]

    def others_wait(*asked: Any) -> Any:
        with psycopg.connect(clinic.stage.dsn, autocommit=True) as other:
            other.execute("SET lock_timeout = '50ms'")
            for table in ("shell_files", "profile_classification_audit"):
                with pytest.raises(psycopg.errors.LockNotAvailable):
                    other.execute(f"SELECT FROM records.{table} FOR UPDATE")
        return write

    monkeypatch.setattr(pass2, "SQL", Watched(pass2.SQL, {"write_conditions": others_wait}))
    assert clinic.step(job)["status"] == "completed"


class Watched(dict[str, Any]):
    """Hold queries, and do something before some of them."""

    def __init__(self, queries: Any, before: dict[str, Any]) -> None:
        super().__init__(queries)
        self._before = before

    def __getitem__(self, name: str) -> Any:
        if name in self._before:
            self._before[name]()
        return super().__getitem__(name)


def test_attempt_may_take_long_after_a_long_review(clinic: Clinic) -> None:
    job = clinic.begun(clinic.upload(), found(ASTHMA), coded([1], **CUT), coded([1]), number=2)
    clinic.db.execute("UPDATE signalbox.jobs SET first_started_at = now() - interval '31 days'")
    assert [clinic.step(job)["status"] for _ in range(2)] == ["pending", "completed"]


def test_text_of_another_session_is_not_read(clinic: Clinic) -> None:
    job = clinic.begun(clinic.upload(), found(ASTHMA))
    other = Jsonb(job["payload"] | {"ocr_spatial_data": "records/ocr/other.json"})
    clinic.db.execute("UPDATE signalbox.jobs SET payload = %s WHERE id = %s", (other, job["id"]))
    assert code(clinic.step(job)) == "NOT_FOUND"
