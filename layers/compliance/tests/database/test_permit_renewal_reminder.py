"""People are reminded of permits that expire, the more of them the nearer it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from signalbox.testing.stage import Stage
from tests.support.compliance_rows import Workforce, rows, run_job

SLOT = datetime(2026, 3, 10, 8, tzinfo=UTC)
TODAY = SLOT.date()


def remind(stage: Stage, people: Workforce, days: int = 0, **payload: Any) -> dict[str, Any]:
    return run_job(stage, "permit_renewal_reminder", people.company_id, SLOT + timedelta(days=days), **payload)


def told(people: Workforce) -> set[str]:
    return {str(user) for (user,) in rows(people.db, "notifications", "user_id")}


@pytest.mark.parametrize(
    ("days", "level", "severity"),
    [
        (91, None, None),
        (90, 90, "INFO"),
        (31, 90, "INFO"),
        (30, 30, "WARNING"),
        (8, 30, "WARNING"),
        (7, 7, "CRITICAL"),
        (0, 7, "CRITICAL"),
        (-1, None, None),
    ],
)
def test_the_nearest_level_is_told(
    stage: Stage, people: Workforce, days: int, level: int | None, severity: str
) -> None:
    expiry = TODAY + timedelta(days=days)
    permit = people.document(expiry_date=expiry, document_type="permit", title="Bund permit")
    found = int(level is not None)
    assert remind(stage, people) == {"documents": found, "notifications": found, "skipped": 0}
    key = f"PERMIT_RENEWAL_REMINDER:{permit}:{expiry}:{level}:{people.owner_id}:EMAIL"
    metadata = {"reminder_type": "PERMIT_RENEWAL", "reminder_days": level, "expiry_date": expiry.isoformat()}
    title = f"{days} Days: Bund permit Renewal"
    shown = rows(people.db, "notifications", "dedupe_key", "severity", "title", "metadata")
    assert shown == [(key, severity, title, metadata)] * found


def test_more_people_are_told_the_nearer_it_is(stage: Stage, people: Workforce) -> None:
    owners = {people.owner_id, people.hire("ADMIN")}
    staff = people.hire("STAFF", site=True)
    viewer = people.hire("VIEWER", site=True)
    people.hire("STAFF")
    people.document(expiry_date=TODAY + timedelta(days=90))
    remind(stage, people)
    assert told(people) == owners
    remind(stage, people, 60)
    assert told(people) == owners | {staff}
    remind(stage, people, 83)
    assert told(people) == owners | {staff, viewer}


def test_each_level_is_told_once_and_none_after_a_nearer_one(stage: Stage, people: Workforce) -> None:
    people.document(expiry_date=TODAY + timedelta(days=90))
    assert [remind(stage, people, day)["notifications"] for day in (0, 1, 85, 60, 86)] == [1, 0, 1, 0, 0]


def test_a_renewed_permit_is_told_anew(stage: Stage, people: Workforce) -> None:
    people.document(expiry_date=TODAY + timedelta(days=5))
    remind(stage, people)
    people.db.execute("UPDATE compliance.documents SET expiry_date = expiry_date + 60")
    assert remind(stage, people)["notifications"] == 1


def test_other_days_may_be_asked_for(stage: Stage, people: Workforce) -> None:
    people.document(expiry_date=TODAY + timedelta(days=100))
    assert remind(stage, people, reminder_days=[120, 60])["notifications"] == 1
    [(metadata,)] = rows(people.db, "notifications", "metadata")
    assert metadata["reminder_days"] == 120


def test_permits_that_have_ended_or_are_not_theirs_are_left_out(stage: Stage, people: Workforce) -> None:
    soon = TODAY + timedelta(days=5)
    people.document(expiry_date=soon, status="EXPIRED")
    people.document(expiry_date=soon, deleted_at=SLOT)
    Workforce.make(people.db, name="Other").document(expiry_date=soon)
    assert remind(stage, people)["documents"] == 0


@pytest.mark.parametrize(("zone", "count"), [("Pacific/Kiritimati", 0), ("UTC", 1)])
def test_the_day_is_that_of_the_site(stage: Stage, people: Workforce, zone: str, count: int) -> None:
    people.db.execute("UPDATE compliance.sites SET timezone = %s", (zone,))
    people.document(expiry_date=TODAY)
    slot = SLOT.replace(hour=18)
    assert run_job(stage, "permit_renewal_reminder", people.company_id, slot)["documents"] == count
