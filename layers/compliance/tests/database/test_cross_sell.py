"""Words in permits suggest modules that the company does not have, once for each permit."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from compliance.permits.cross_sell_trigger_detection import find_keywords
from signalbox.testing.stage import Stage
from tests.support.compliance_rows import Workforce, add, rows, run_job

SLOT = datetime(2026, 3, 10, 6, tzinfo=UTC)
KEYWORDS = ["trade effluent", "sewer", "water company", "discharge consent", "effluent", "drain"]


@pytest.fixture
def module_2(people: Workforce) -> str:
    add(people.db, "modules", module_code="MODULE_1", module_name="Permits")
    return add(people.db, "modules", module_code="MODULE_2", module_name="Trade effluent", cross_sell_keywords=KEYWORDS)


def permit(people: Workforce, text: str, **fields: Any) -> str:
    [(module, *_)] = people.db.execute("SELECT id FROM compliance.modules WHERE module_code = 'MODULE_1'").fetchall()
    return people.document(**{"module_id": module, "extraction_status": "COMPLETED", "extracted_text": text} | fields)


def detect(stage: Stage, people: Workforce, **payload: Any) -> dict[str, Any]:
    return run_job(stage, "cross_sell_trigger_detection", people.company_id, SLOT, **payload)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Trade-Effluent may enter the SEWER.", ["trade effluent", "sewer"]),
        ("sewers and effluents", []),
        ("the trade\neffluent", ["trade effluent"]),
        ("sewer, sewer, sewer", ["sewer"]),
        ("", []),
    ],
)
def test_keywords_are_found_as_whole_words(text: str, found: list[str]) -> None:
    assert find_keywords(text, ["trade effluent", "sewer", "Sewer", "?"]) == found


def test_a_permit_suggests_a_module_to_the_owners(stage: Stage, people: Workforce, module_2: str) -> None:
    people.hire("ADMIN")
    document = permit(people, "Effluent to the sewer of the water company")
    assert detect(stage, people) == {"documents": 1, "triggers": 1, "notifications": 1, "skipped": 0}
    [(trigger, module, source, words, confidence, status)] = rows(
        people.db,
        "cross_sell_triggers",
        "id",
        "target_module_id",
        "trigger_source",
        "detected_keywords",
        "confidence",
        "status",
    )
    assert (str(module), source, float(confidence), status) == (module_2, document, 0.6, "pending")
    assert words == ["sewer", "water company", "effluent"]
    [told] = rows(people.db, "notifications", "user_id", "entity_type", "entity_id", "title", "message", "channel")
    message = "We detected references to sewer in your permit. Would you like to activate Trade effluent?"
    title = "Module Suggestion: Trade effluent"
    assert (str(told[0]), *told[1:]) == (people.owner_id, "CROSS_SELL_TRIGGER", trigger, title, message, "IN_APP")


def test_a_company_without_an_owner_is_warned_of(
    stage: Stage, people: Workforce, module_2: str, caplog: pytest.LogCaptureFixture
) -> None:
    people.db.execute("UPDATE compliance.user_roles SET role = 'STAFF'")
    permit(people, "sewer")
    assert detect(stage, people) == {"documents": 1, "triggers": 1, "notifications": 0, "skipped": 0}
    assert "compliance.recipient_missing" in caplog.messages


def test_confidence_ends_at_one(stage: Stage, people: Workforce, module_2: str) -> None:
    permit(people, " ".join(KEYWORDS))
    detect(stage, people)
    assert rows(people.db, "cross_sell_triggers", "confidence") == [(1,)]


def test_a_permit_is_scanned_again_only_after_it_has_changed(stage: Stage, people: Workforce, module_2: str) -> None:
    permit(people, "sewer")
    assert [detect(stage, people)["documents"] for _ in range(2)] == [1, 0]
    assert detect(stage, people, process_recent_only=False) == {
        "documents": 1,
        "triggers": 0,
        "notifications": 0,
        "skipped": 0,
    }
    people.db.execute("UPDATE compliance.documents SET extracted_text = 'drain', updated_at = now()")
    assert detect(stage, people)["documents"] == 1
    assert rows(people.db, "cross_sell_triggers", "detected_keywords") == [(["sewer"],)], "a trigger is left as it is"


@pytest.mark.parametrize(
    "fields",
    [{"status": "EXPIRED"}, {"extraction_status": "PENDING"}, {"deleted_at": SLOT}, {"extracted_text": None}],
)
def test_permits_that_were_not_read_are_left_out(
    stage: Stage, people: Workforce, module_2: str, fields: dict[str, Any]
) -> None:
    permit(people, "sewer", **fields)
    assert detect(stage, people)["documents"] == 0


def test_a_module_that_is_active_is_not_suggested(stage: Stage, people: Workforce, module_2: str) -> None:
    add(people.db, "module_activations", company_id=people.company_id, module_id=module_2)
    permit(people, "sewer")
    assert detect(stage, people) == {"documents": 1, "triggers": 0, "notifications": 0, "skipped": 0}


def test_another_companys_activations_and_permits_are_theirs(stage: Stage, people: Workforce, module_2: str) -> None:
    other = Workforce.make(people.db, name="Other")
    add(people.db, "module_activations", company_id=other.company_id, module_id=module_2)
    permit(other, "sewer")
    permit(people, "sewer")
    assert detect(stage, people) == {"documents": 1, "triggers": 1, "notifications": 1, "skipped": 0}
