"""Samples are due after the last one, by the parameter's frequency, and people are reminded of them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from signalbox.testing.stage import Stage
from tests.support.compliance_rows import Workforce, add, rows, run_job

SLOT = datetime(2026, 3, 10, 6, tzinfo=UTC)  # a Tuesday
TODAY = SLOT.date()


def schedule(stage: Stage, people: Workforce, slot: datetime = SLOT, **payload: Any) -> dict[str, Any]:
    return run_job(stage, "sampling_schedule", people.company_id, slot, **payload)


def parameter(people: Workforce, last: date | None, **fields: Any) -> str:
    made = {"created_at": datetime(2026, 1, 15, tzinfo=UTC), "parameter_type": "pH"}
    one = add(people.db, "parameters", **people.ids, document_id=people.document(), **made | fields)
    if last is not None:
        add(people.db, "lab_results", parameter_id=one, sample_date=last, value=7)
    return one


@pytest.mark.parametrize(
    ("frequency", "last", "expected"),
    [
        ("DAILY", date(2026, 3, 6), date(2026, 3, 9)),  # a Friday, so Monday
        ("DAILY", date(2026, 4, 2), date(2026, 4, 7)),  # Easter
        ("WEEKLY", date(2026, 3, 9), date(2026, 3, 16)),
        ("WEEKLY", date(2026, 3, 10), date(2026, 3, 16)),
        ("MONTHLY", date(2026, 1, 31), date(2026, 2, 1)),
        ("MONTHLY", date(2026, 2, 1), date(2026, 3, 1)),
        ("QUARTERLY", date(2025, 12, 31), date(2026, 1, 1)),
        ("QUARTERLY", date(2026, 1, 1), date(2026, 4, 1)),
        ("ANNUAL", date(2024, 2, 29), date(2025, 2, 28)),
        ("FORTNIGHTLY", date(2026, 3, 9), date(2026, 3, 16)),
        (None, None, date(2026, 1, 22)),
    ],
)
def test_the_next_sample_follows_the_last_one(
    stage: Stage, people: Workforce, frequency: str | None, last: date | None, expected: date
) -> None:
    parameter(people, last, sampling_frequency=frequency)
    schedule(stage, people, datetime(2026, 4, 7, 6, tzinfo=UTC))
    assert rows(people.db, "parameters", "next_sample_date") == [(expected,)]


def test_a_weekly_sample_is_due_on_the_configured_day(stage: Stage, people: Workforce) -> None:
    parameter(people, date(2026, 3, 9), sampling_frequency="WEEKLY", sampling_weekday=2)
    schedule(stage, people)
    assert rows(people.db, "parameters", "next_sample_date") == [(date(2026, 3, 11),)]


@pytest.mark.parametrize(
    ("days_late", "severity"), [(-1, None), (0, "INFO"), (1, "WARNING"), (7, "WARNING"), (8, "ERROR")]
)
def test_a_sample_that_is_later_is_told_more_gravely(
    stage: Stage, people: Workforce, days_late: int, severity: str | None
) -> None:
    due = TODAY - timedelta(days=days_late)
    one = parameter(people, due - timedelta(days=7), sampling_frequency="OTHER")
    result = schedule(stage, people)
    assert result == {"parameters": 1, "due": int(bool(severity)), "notifications": int(bool(severity)), "skipped": 0}
    key = f"SAMPLING_SCHEDULE:{one}:{due}:{severity}:{people.owner_id}:IN_APP"
    expected = [(key, severity, "Sample Due: pH", "Sampling is due for pH at North works")] * bool(severity)
    assert rows(people.db, "notifications", "dedupe_key", "severity", "title", "message") == expected
    assert schedule(stage, people)["notifications"] == 0, "each severity is told once"


def test_a_past_slot_tells_nothing_milder_and_newcomers_nothing_again(stage: Stage, people: Workforce) -> None:
    parameter(people, TODAY - timedelta(days=9), sampling_frequency="OTHER")
    schedule(stage, people)
    assert schedule(stage, people, SLOT - timedelta(days=2))["notifications"] == 0
    people.hire("STAFF", site=True)
    assert schedule(stage, people)["notifications"] == 0


def test_all_of_the_site_are_told_and_nobody_elsewhere(stage: Stage, people: Workforce) -> None:
    there = {people.hire("STAFF", site=True), people.hire("VIEWER", site=True)}
    stranger = add(people.db, "users", email="s@example.com")
    add(people.db, "user_site_assignments", user_id=stranger, site_id=people.site_id)
    parameter(people, date(2026, 3, 3), sampling_frequency="WEEKLY")
    schedule(stage, people)
    assert {str(user) for (user,) in rows(people.db, "notifications", "user_id")} == there


def test_a_past_slot_knows_nothing_of_later_samples(stage: Stage, people: Workforce) -> None:
    one = parameter(people, date(2026, 3, 2), sampling_frequency="WEEKLY")
    add(people.db, "lab_results", parameter_id=one, sample_date=TODAY, value=7)
    schedule(stage, people, SLOT - timedelta(days=1))
    assert rows(people.db, "parameters", "next_sample_date") == [(date(2026, 3, 9),)]


def test_the_audit_log_says_when_a_date_was_set(stage: Stage, people: Workforce) -> None:
    parameter(people, date(2026, 3, 9), sampling_frequency="WEEKLY")
    for force in (False, False, True):
        schedule(stage, people, force_generate=force)
    expected = {"next_sample_date": "2026-03-16", "sampling_frequency": "WEEKLY"}
    logged = rows(people.db, "audit_logs", "action_type", "entity_type", "new_values")
    assert logged == [("SAMPLING_SCHEDULE_GENERATED", "PARAMETER", expected)] * 2


def test_only_active_parameters_of_active_permits_count(stage: Stage, people: Workforce) -> None:
    parameter(people, None, is_active=False)
    for fields in ({"status": "EXPIRED"}, {"deleted_at": SLOT}):
        add(people.db, "parameters", **people.ids, document_id=people.document(**fields))
    parameter(Workforce.make(people.db, name="Other"), None)
    assert schedule(stage, people)["parameters"] == 0


def test_a_bad_parameter_keeps_no_other_from_being_done(stage: Stage, people: Workforce) -> None:
    parameter(people, date(2026, 3, 9), sampling_frequency="WEEKLY")
    parameter(people, date(9999, 12, 31), sampling_frequency="ANNUAL", created_at=datetime(9999, 12, 1, tzinfo=UTC))
    result = schedule(stage, people)
    assert (result["parameters"], result["skipped"]) == (2, 1)
