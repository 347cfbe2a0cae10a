"""A consultant's assignments are checked, and each client's compliance is summed up."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from signalbox.testing.stage import Stage
from tests.support.compliance_rows import Workforce, add, rows

SLOT = datetime(2026, 3, 10, 2, tzinfo=UTC)
TODAY = SLOT.date()


def sync(stage: Stage, consultant: str, sync_type: str = "FULL", slot: datetime = SLOT) -> dict[str, Any]:
    payload = {"consultant_id": consultant, "sync_type": sync_type, "slot": slot.isoformat()}
    job = stage.step(stage.submit("consultant_client_sync", payload=payload, tenant=consultant))
    assert job["status"] == "completed", stage.attempts(job["id"])
    result: dict[str, Any] = job["result"]
    return result


@pytest.fixture
def consultant(people: Workforce) -> str:
    user = people.hire("CONSULTANT")
    add(people.db, "consultant_client_assignments", consultant_id=user, client_company_id=people.company_id)
    return user


def completed(people: Workforce, due: date, at: datetime) -> None:
    people.deadline(people.obligation(), due, status="COMPLETED", completed_at=at)


def test_the_score_is_the_share_that_was_on_time(stage: Stage, people: Workforce, consultant: str) -> None:
    due = date(2026, 3, 9)
    completed(people, due, datetime(2026, 3, 9, 23, 59, tzinfo=UTC))
    completed(people, due, datetime(2026, 3, 10, 0, 1, tzinfo=UTC))
    people.deadline(people.obligation(), date(2025, 3, 10), status="OVERDUE")
    people.deadline(people.obligation(), date(2025, 3, 9), status="OVERDUE")  # more than twelve months ago
    upcoming = people.deadline(people.obligation(), TODAY + timedelta(days=30))
    people.deadline(people.obligation(), TODAY + timedelta(days=31))
    add(people.db, "audit_logs", company_id=people.company_id, action_type="SIGNED_IN")
    assert sync(stage, consultant) == {"assignments": 1, "deactivated": 0, "clients": 1}
    columns = ("compliance_score", "due_count", "on_time_count", "overdue_count", "data")
    [(score, due_count, on_time, overdue, data)] = rows(people.db, "consultant_dashboards", *columns)
    assert (float(score), due_count, on_time, overdue) == (33.3, 3, 1, 2)
    assert [one["deadline_id"] for one in data["upcoming"]] == [upcoming]
    assert [one["action_type"] for one in data["recent_activity"]] == ["SIGNED_IN"]


def test_what_belongs_to_a_deleted_site_or_document_counts_nowhere(
    stage: Stage, people: Workforce, consultant: str
) -> None:
    gone = {"deleted_at": SLOT}
    closed = add(people.db, "sites", company_id=people.company_id, **gone)
    for obligation in (people.obligation(site_id=closed), people.obligation(document_id=people.document(**gone))):
        people.deadline(obligation, TODAY)
        people.deadline(obligation, date(2026, 3, 9), status="OVERDUE")
    sync(stage, consultant)
    [(due_count, overdue, data)] = rows(people.db, "consultant_dashboards", "due_count", "overdue_count", "data")
    assert (due_count, overdue, data["upcoming"]) == (0, 0, [])


def test_the_dashboards_of_two_clients_hold_their_own_rows(stage: Stage, people: Workforce, consultant: str) -> None:
    other = Workforce.make(people.db, name="Other")
    add(people.db, "user_roles", user_id=consultant, company_id=other.company_id, role="CONSULTANT")
    add(people.db, "consultant_client_assignments", consultant_id=consultant, client_company_id=other.company_id)
    for client, days in ((people, [1]), (other, [2, 3])):
        for day in days:
            client.deadline(client.obligation(), TODAY + timedelta(days=day))
        add(people.db, "audit_logs", company_id=client.company_id, action_type=f"OF_{len(days)}")
    assert sync(stage, consultant)["clients"] == 2
    found = rows(people.db, "consultant_dashboards", "client_company_id", "data")
    shown = {
        str(id_): (len(data["upcoming"]), [one["action_type"] for one in data["recent_activity"]])
        for id_, data in found
    }
    assert shown == {people.company_id: (1, ["OF_1"]), other.company_id: (2, ["OF_2"])}


def test_on_time_is_judged_in_the_zone_of_the_client(stage: Stage, people: Workforce, consultant: str) -> None:
    people.db.execute("UPDATE compliance.companies SET timezone = 'Pacific/Kiritimati'")
    completed(people, date(2026, 3, 8), datetime(2026, 3, 8, 12, tzinfo=UTC))
    sync(stage, consultant)
    assert rows(people.db, "consultant_dashboards", "on_time_count") == [(0,)]


def test_a_client_without_deadlines_has_no_score(stage: Stage, people: Workforce, consultant: str) -> None:
    sync(stage, consultant)
    assert rows(people.db, "consultant_dashboards", "compliance_score", "due_count") == [(None, 0)]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("UPDATE compliance.companies SET deleted_at = now()", "CLIENT_DELETED"),
        ("UPDATE compliance.user_roles SET role = 'VIEWER' WHERE role = 'CONSULTANT'", "ROLE_MISSING"),
    ],
)
def test_assignments_that_have_ended_are_set_inactive(
    stage: Stage, people: Workforce, consultant: str, change: str, reason: str
) -> None:
    people.db.execute(change)
    assert sync(stage, consultant) == {"assignments": 1, "deactivated": 1, "clients": 0}
    assert rows(people.db, "consultant_client_assignments", "status", "status_reason") == [("INACTIVE", reason)]
    assert sync(stage, consultant)["assignments"] == 0


@pytest.mark.parametrize(
    ("sync_type", "dashboards", "told"), [("ASSIGNMENTS", 0, 0), ("DASHBOARD", 1, 0), ("FULL", 1, 1)]
)
def test_the_scope_decides_what_is_done(
    stage: Stage, people: Workforce, consultant: str, sync_type: str, dashboards: int, told: int
) -> None:
    sync(stage, consultant, sync_type)
    sync(stage, consultant, sync_type)
    assert len(rows(people.db, "consultant_dashboards", "id")) == dashboards
    key = f"CONSULTANT_CLIENT_SYNC:{consultant}:{SLOT.isoformat()}:{consultant}:IN_APP"
    assert rows(people.db, "notifications", "dedupe_key") == [(key,)] * told


def test_an_unknown_consultant_is_completed_with_zeros(stage: Stage, people: Workforce) -> None:
    unknown = "00000000-0000-4000-8000-000000000000"
    assert sync(stage, unknown) == {"assignments": 0, "deactivated": 0, "clients": 0}


def test_a_client_with_a_bad_zone_blocks_no_other(stage: Stage, people: Workforce, consultant: str) -> None:
    bad = add(people.db, "companies", name="Nowhere", timezone="Mars/Phobos")
    add(people.db, "user_roles", user_id=consultant, company_id=bad, role="CONSULTANT")
    add(people.db, "consultant_client_assignments", consultant_id=consultant, client_company_id=bad)
    assert sync(stage, consultant) == {"assignments": 2, "deactivated": 0, "clients": 1}
    assert [str(company) for (company,) in rows(people.db, "audit_logs", "company_id")] == [bad]


def test_many_clients_are_done_in_pieces(stage: Stage, people: Workforce, consultant: str) -> None:
    people.db.execute(
        "WITH made AS (INSERT INTO compliance.companies (name) SELECT 'c' FROM generate_series(1, 120) RETURNING id), "
        "roles AS (INSERT INTO compliance.user_roles SELECT %s, id, 'CONSULTANT' FROM made) "
        "INSERT INTO compliance.consultant_client_assignments (consultant_id, client_company_id) "
        "SELECT %s, id FROM made",
        (consultant, consultant),
    )
    job_id = stage.submit("consultant_client_sync", payload={"consultant_id": consultant})
    assert stage.step(job_id)["status"] == "pending"
    assert stage.step(job_id)["result"] == {"assignments": 121, "deactivated": 0, "clients": 121}
