"""People are reminded each day of obligations that are due soon and have no evidence of their period."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from signalbox.testing.stage import Stage
from tests.support.compliance_rows import Workforce, add, rows, run_job

SLOT = datetime(2026, 3, 10, 9, tzinfo=UTC)
TODAY = SLOT.date()


def remind(stage: Stage, people: Workforce, days: int = 0) -> dict[str, Any]:
    return run_job(stage, "evidence_reminder", people.company_id, SLOT + timedelta(days=days))


def evidence(people: Workforce, obligation: str, *, item: dict[str, Any] | None = None, **link: Any) -> None:
    found = add(people.db, "evidence_items", **people.ids | {"file_name": "a.pdf"} | (item or {}))
    add(people.db, "obligation_evidence_links", obligation_id=obligation, evidence_id=found, **link)


@pytest.mark.parametrize(("days", "due"), [(-1, False), (0, True), (7, True), (8, False)])
def test_obligations_due_within_seven_days_are_reminded_of(
    stage: Stage, people: Workforce, days: int, due: bool
) -> None:
    one = people.obligation(deadline_date=TODAY + timedelta(days=days))
    assert remind(stage, people) == {"obligations": int(due), "notifications": int(due), "skipped": 0}
    key = f"EVIDENCE_REMINDER:{one}:{TODAY}:{people.owner_id}:EMAIL"
    expected = [(key, "WARNING", "Evidence Required: Check the bund", {"days_until_due": days})]
    assert rows(people.db, "notifications", "dedupe_key", "severity", "title", "metadata") == expected * due


def test_a_reminder_comes_once_a_day_until_there_is_evidence(stage: Stage, people: Workforce) -> None:
    one = people.obligation(deadline_date=TODAY + timedelta(days=7))
    assert [remind(stage, people, day)["notifications"] for day in (0, 0, 1)] == [1, 0, 1]
    evidence(people, one)
    assert remind(stage, people, 2)["notifications"] == 0


@pytest.mark.parametrize(
    ("item", "link", "counts"),
    [
        ({}, {}, True),
        ({"deleted_at": SLOT}, {}, False),
        ({}, {"unlinked_at": SLOT}, False),
        ({}, {"linked_at": datetime(2026, 2, 15, tzinfo=UTC)}, True),
        ({}, {"linked_at": datetime(2026, 2, 14, 23, 59, tzinfo=UTC)}, False),
        ({"company_id": None}, {}, False),
    ],
)
def test_evidence_counts_that_is_live_and_of_the_period(
    stage: Stage, people: Workforce, item: dict[str, Any], link: dict[str, Any], counts: bool
) -> None:
    one = people.obligation(deadline_date=date(2026, 3, 15))
    people.deadline(one, date(2026, 3, 15), compliance_period_start=date(2026, 2, 15))
    evidence(people, one, item=item, **{"linked_at": SLOT} | link)
    assert remind(stage, people)["notifications"] == int(not counts)


@pytest.mark.parametrize("frequency", ["ONE_TIME", None])
def test_any_evidence_counts_where_nothing_recurs(stage: Stage, people: Workforce, frequency: str | None) -> None:
    one = people.obligation(frequency=frequency, deadline_date=date(2026, 3, 15))
    people.deadline(one, date(2026, 3, 15), compliance_period_start=date(2026, 2, 15))
    evidence(people, one, linked_at=datetime(2020, 1, 1, tzinfo=UTC))
    assert remind(stage, people)["notifications"] == 0


def test_other_companies_evidence_and_obligations_stay_theirs(stage: Stage, people: Workforce) -> None:
    other = Workforce.make(people.db, name="Other")
    other.obligation(deadline_date=TODAY)
    one = people.obligation(deadline_date=TODAY)
    found = add(people.db, "evidence_items", **other.ids, file_name="theirs.pdf")
    add(people.db, "obligation_evidence_links", obligation_id=one, evidence_id=found)
    assert remind(stage, people) == {"obligations": 1, "notifications": 1, "skipped": 0}
    assert [str(user) for (user,) in rows(people.db, "notifications", "user_id")] == [people.owner_id]
