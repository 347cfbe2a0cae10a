"""People are warned of deadlines once for each level, and of what has passed."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import psycopg
import pytest

from signalbox.testing.stage import Stage
from tests.support.compliance_rows import Workforce, add, rows, run_job

SLOT = datetime(2026, 3, 10, 6, tzinfo=UTC)
TODAY = SLOT.date()


def alert(stage: Stage, people: Workforce, days: int = 0, **payload: Any) -> dict[str, Any]:
    """Run the job some days after SLOT."""
    return run_job(stage, "deadline_alert", people.company_id, SLOT + timedelta(days=days), **payload)


def due_in(people: Workforce, days: int, **fields: Any) -> str:
    obligation = people.obligation(deadline_date=TODAY + timedelta(days=days))
    return people.deadline(obligation, TODAY + timedelta(days=days), **fields)


def told(people: Workforce) -> list[tuple[Any, ...]]:
    return rows(people.db, "notifications", "dedupe_key", "severity", order="dedupe_key")


@pytest.mark.parametrize(
    ("days", "level", "severity", "status", "channels"),
    [
        (8, None, None, "PENDING", []),
        (7, 7, "INFO", "PENDING", ["EMAIL", "IN_APP"]),
        (4, 7, "INFO", "PENDING", ["EMAIL", "IN_APP"]),
        (3, 3, "WARNING", "DUE_SOON", ["EMAIL", "IN_APP"]),
        (2, 3, "WARNING", "DUE_SOON", ["EMAIL", "IN_APP"]),
        (1, 1, "CRITICAL", "DUE_SOON", ["EMAIL", "IN_APP", "SMS"]),
        (0, 1, "CRITICAL", "DUE_SOON", ["EMAIL", "IN_APP", "SMS"]),
        (-1, 0, "CRITICAL", "OVERDUE", ["EMAIL", "IN_APP", "SMS"]),
    ],
)
def test_the_level_is_the_smallest_that_the_days_are_within(
    stage: Stage, people: Workforce, days: int, level: int, severity: str, status: str, channels: list[str]
) -> None:
    deadline = due_in(people, days)
    result = alert(stage, people)
    expected = [(f"DEADLINE_ALERT:{deadline}:{level}:{people.owner_id}:{one}", severity) for one in channels]
    assert told(people) == expected
    assert rows(people.db, "deadlines", "status") == [(status,)]
    assert (result["deadlines"], result["notifications"]) == (int(days <= 7), len(channels))
    deliveries = people.db.execute(
        "SELECT priority, tenant, payload ->> 'channel' FROM signalbox.jobs WHERE job_type = 'deliver_notification'"
    )
    priority = {"CRITICAL": 1, "WARNING": 3, "INFO": 5}.get(severity or "")
    assert sorted(deliveries) == [(priority, people.company_id, one.lower()) for one in channels if one != "IN_APP"]


def test_a_deadline_is_told_each_level_once_while_it_comes_nearer(stage: Stage, people: Workforce) -> None:
    due_in(people, 7)
    for day in (0, 0, 1, 4, 5, 6, 7, 8, 9):
        alert(stage, people, day)
    assert [key.split(":")[2] for (key, _) in told(people)] == ["0"] * 3 + ["1"] * 3 + ["3"] * 2 + ["7"] * 2


def test_a_missed_week_tells_the_gravest_level_alone(stage: Stage, people: Workforce) -> None:
    due_in(people, 7)
    alert(stage, people, 8)
    alert(stage, people, 1)  # a slot that is caught up later
    assert {key.split(":")[2] for (key, _) in told(people)} == {"0"}


def test_of_several_overdue_deadlines_the_latest_is_told(stage: Stage, people: Workforce) -> None:
    obligation = people.obligation()
    for day in (1, 5, 9):
        latest = people.deadline(obligation, date(2026, 3, day))
    result = alert(stage, people)
    assert result["overdue"] == 3
    assert {key.split(":")[1] for (key, _) in told(people)} == {latest}


def test_an_overdue_alert_without_anybody_is_told_once_there_is_somebody(stage: Stage, people: Workforce) -> None:
    due_in(people, -1)
    people.db.execute("UPDATE compliance.users SET deleted_at = now()")
    assert alert(stage, people) == {"deadlines": 1, "due_soon": 0, "overdue": 1, "notifications": 0, "skipped": 0}
    assert (told(people), rows(people.db, "deadlines", "status")) == ([], [("OVERDUE",)])
    people.hire("ADMIN")
    assert [alert(stage, people)["notifications"] for _ in range(2)] == [2, 0]
    assert rows(people.db, "untold_deadlines", "deadline_id") == []


@pytest.mark.parametrize(("email", "phone"), [("no address", "12345"), (None, None)])
def test_a_channel_without_an_address_has_no_row(
    stage: Stage, people: Workforce, email: str | None, phone: str | None
) -> None:
    people.db.execute("UPDATE compliance.users SET email = %s, phone = %s", (email, phone))
    deadline = due_in(people, 1)
    alert(stage, people)
    assert told(people) == [(f"DEADLINE_ALERT:{deadline}:1:{people.owner_id}:IN_APP", "CRITICAL")]


def test_the_person_is_the_assigned_one_else_who_manages_the_site(stage: Stage, people: Workforce) -> None:
    staff, manager = people.hire("STAFF"), people.hire("ADMIN", site=True)
    stranger = Workforce.make(people.db, name="Other").owner_id
    found = []
    for assigned in (staff, stranger, None):
        people.db.execute("DELETE FROM compliance.notifications; DELETE FROM compliance.deadlines")
        obligation = people.obligation(assigned_to=assigned)
        people.deadline(obligation, TODAY + timedelta(days=7))
        alert(stage, people)
        found.append({user for (user,) in rows(people.db, "notifications", "user_id")})
    assert [[str(user) for user in users] for users in found] == [[staff], [manager], [manager]]


def test_titles_lose_control_characters(stage: Stage, people: Workforce) -> None:
    obligation = people.obligation(summary="Bund\r\nBcc: all@example.com")
    people.deadline(obligation, TODAY + timedelta(days=7))
    alert(stage, people)
    assert set(rows(people.db, "notifications", "title")) == {("Due in 7 days: BundBcc: all@example.com",)}


def test_only_the_company_and_its_site_are_warned(stage: Stage, people: Workforce, db: psycopg.Connection) -> None:
    other = Workforce.make(db, name="Other")
    due_in(other, 1)
    due_in(people, 1)
    elsewhere = add(db, "sites", company_id=people.company_id, name="South works")
    assert alert(stage, people, site_id=elsewhere)["deadlines"] == 0
    assert alert(stage, people)["deadlines"] == 1
    job = stage.step(
        stage.submit("deadline_alert", payload={"company_id": people.company_id, "site_id": other.site_id})
    )
    assert job["status"] == "failed"
    assert {str(company) for (company,) in rows(db, "notifications", "company_id")} == {people.company_id}


@pytest.mark.parametrize(("zone", "level"), [("Pacific/Kiritimati", "1"), ("UTC", "3")])
def test_the_days_are_counted_in_the_zone_of_the_site(stage: Stage, people: Workforce, zone: str, level: str) -> None:
    people.db.execute("UPDATE compliance.sites SET timezone = %s", (zone,))
    due_in(people, 2)
    run_job(stage, "deadline_alert", people.company_id, SLOT.replace(hour=18))
    assert {key.split(":")[2] for (key, _) in told(people)} == {level}


def test_a_bad_row_keeps_no_other_from_being_told(stage: Stage, people: Workforce, db: psycopg.Connection) -> None:
    due_in(people, 1)
    nowhere = add(db, "sites", company_id=people.company_id, timezone="Mars/Phobos")
    bad = add(db, "obligations", company_id=people.company_id, site_id=nowhere)
    add(db, "deadlines", company_id=people.company_id, obligation_id=bad, due_date=TODAY)
    result = alert(stage, people)
    assert (result["deadlines"], result["notifications"], result["skipped"]) == (2, 3, 1)
