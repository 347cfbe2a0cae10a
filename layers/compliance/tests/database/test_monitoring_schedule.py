"""Deadlines follow the grid from base_date, and statuses follow the day in the site's zone."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import psycopg
import pytest

from signalbox.testing.stage import Stage
from tests.support.compliance_rows import Workforce, add, run_job

SLOT = datetime(2026, 3, 10, 12, tzinfo=UTC)
TODAY = SLOT.date()


def monitor(stage: Stage, company_id: str, slot: datetime = SLOT, **payload: Any) -> dict[str, Any]:
    return run_job(stage, "monitoring_schedule", company_id, slot, **payload)


def due_dates(people: Workforce, obligation_id: str) -> list[date]:
    found = people.db.execute(
        "SELECT due_date FROM compliance.deadlines WHERE obligation_id = %s ORDER BY 1", (obligation_id,)
    )
    return [due for (due,) in found]


def obligation(people: Workforce, obligation_id: str) -> tuple[date | None, str]:
    [(deadline, status)] = people.db.execute(
        "SELECT deadline_date, status FROM compliance.obligations WHERE id = %s", (obligation_id,)
    ).fetchall()
    return deadline, status


def complete(people: Workforce, obligation_id: str, due: date, at: datetime) -> None:
    people.db.execute(
        "UPDATE compliance.deadlines SET status = 'COMPLETED', completed_at = %s "
        "WHERE obligation_id = %s AND due_date = %s",
        (at, obligation_id, due),
    )


@pytest.mark.parametrize(
    ("frequency", "base", "expected"),
    [
        ("MONTHLY", date(2026, 1, 31), [date(2026, 2, 28), date(2026, 3, 31), date(2026, 4, 30), date(2026, 5, 31)]),
        ("QUARTERLY", date(2025, 11, 30), [date(2026, 2, 28), date(2026, 5, 30)]),
        ("ANNUAL", date(2024, 2, 29), [date(2025, 2, 28), date(2026, 2, 28), date(2027, 2, 28)]),
        ("WEEKLY", date(2026, 5, 26), [date(2026, 6, 2), date(2026, 6, 9)]),
        ("ONE_TIME", date(2026, 12, 24), [date(2026, 12, 24)]),
        ("ONE_TIME", date(2025, 12, 24), [date(2025, 12, 24)]),
    ],
)
def test_deadlines_stand_on_the_grid_up_to_ninety_days_ahead(
    stage: Stage, people: Workforce, frequency: str, base: date, expected: list[date]
) -> None:
    one = people.obligation(frequency=frequency, base_date=base)
    result = monitor(stage, people.company_id)
    dates = [due for due in expected if due <= TODAY + timedelta(days=90)] or expected[:1]
    assert due_dates(people, one) == dates
    assert (result["obligations"], result["deadlines_created"]) == (1, len(dates))
    assert obligation(people, one)[0] == dates[0]


def test_daily_deadlines_include_the_ninetieth_day(stage: Stage, people: Workforce) -> None:
    one = people.obligation(frequency="DAILY", base_date=TODAY)
    monitor(stage, people.company_id)
    dates = due_dates(people, one)
    assert (dates[0], dates[-1], len(dates)) == (TODAY + timedelta(days=1), TODAY + timedelta(days=90), 90)


def test_a_second_run_changes_nothing(stage: Stage, people: Workforce) -> None:
    people.obligation(base_date=date(2026, 3, 31))
    monitor(stage, people.company_id)
    again = monitor(stage, people.company_id)
    assert again == {
        "obligations": 1,
        "deadlines_created": 0,
        "due_soon": 0,
        "overdue": 0,
        "notifications": 0,
        "skipped": 0,
    }


def test_completing_a_deadline_moves_the_obligation_to_the_next(stage: Stage, people: Workforce) -> None:
    one = people.obligation(base_date=date(2026, 1, 31))
    monitor(stage, people.company_id)
    assert obligation(people, one) == (date(2026, 2, 28), "OVERDUE")
    complete(people, one, date(2026, 2, 28), SLOT)
    monitor(stage, people.company_id)
    assert obligation(people, one) == (date(2026, 3, 31), "PENDING")


def test_a_past_slot_knows_nothing_of_later_completions(stage: Stage, people: Workforce) -> None:
    one = people.obligation(base_date=date(2026, 1, 31))
    monitor(stage, people.company_id)
    complete(people, one, date(2026, 2, 28), SLOT)
    monitor(stage, people.company_id, SLOT - timedelta(days=1))
    assert obligation(people, one)[0] == date(2026, 2, 28)


def test_a_deadline_on_base_date_makes_it_the_first_of_the_grid(stage: Stage, people: Workforce) -> None:
    one = people.obligation(base_date=date(2026, 3, 20), deadline_date=date(2026, 3, 20))
    people.deadline(one, date(2026, 3, 20))
    monitor(stage, people.company_id)
    assert obligation(people, one) == (date(2026, 3, 20), "PENDING")
    periods = people.db.execute(
        "SELECT compliance_period_start, compliance_period_end FROM compliance.deadlines "
        "WHERE schedule_id IS NOT NULL ORDER BY 2"
    ).fetchall()
    assert periods == [(date(2026, 3, 20), date(2026, 4, 19)), (date(2026, 4, 20), date(2026, 5, 19))]


@pytest.mark.parametrize(
    ("days", "status", "expected"),
    [
        (8, "PENDING", "PENDING"),
        (7, "PENDING", "DUE_SOON"),
        (0, "PENDING", "DUE_SOON"),
        (0, "IN_PROGRESS", "IN_PROGRESS"),
        (-1, "PENDING", "OVERDUE"),
        (-1, "DUE_SOON", "OVERDUE"),
        (-1, "IN_PROGRESS", "OVERDUE"),
    ],
)
def test_statuses_change_seven_days_before_and_one_after(
    stage: Stage, people: Workforce, days: int, status: str, expected: str
) -> None:
    one = people.obligation(frequency=None, base_date=None, deadline_date=TODAY + timedelta(days=days), status=status)
    result = monitor(stage, people.company_id)
    assert obligation(people, one)[1] == expected
    assert result["obligations"] == 0, "it has no frequency"
    assert (result["due_soon"], result["overdue"]) == (
        int(expected == "DUE_SOON"),
        int(expected == "OVERDUE"),
    )


@pytest.mark.parametrize(("zone", "expected"), [("Pacific/Kiritimati", "OVERDUE"), ("Pacific/Pago_Pago", "DUE_SOON")])
def test_today_is_the_date_in_the_zone_of_the_site(stage: Stage, people: Workforce, zone: str, expected: str) -> None:
    people.db.execute("UPDATE compliance.sites SET timezone = %s", (zone,))
    one = people.obligation(frequency=None, deadline_date=TODAY)
    monitor(stage, people.company_id)
    assert obligation(people, one)[1] == expected


def test_a_one_time_obligation_ends_with_its_deadline(stage: Stage, people: Workforce) -> None:
    one = people.obligation(frequency="ONE_TIME", base_date=date(2026, 3, 5))
    monitor(stage, people.company_id)
    complete(people, one, date(2026, 3, 5), SLOT)
    monitor(stage, people.company_id)
    assert obligation(people, one)[1] == "COMPLETED"


def test_another_frequency_removes_later_deadlines_off_the_grid(stage: Stage, people: Workforce) -> None:
    one = people.obligation(frequency="WEEKLY", base_date=date(2026, 3, 3))
    monitor(stage, people.company_id)
    people.db.execute("UPDATE compliance.obligations SET frequency = 'MONTHLY' WHERE id = %s", (one,))
    monitor(stage, people.company_id)
    assert due_dates(people, one) == [date(2026, 3, 10), date(2026, 4, 3), date(2026, 5, 3), date(2026, 6, 3)]


@pytest.mark.parametrize(("force", "kept"), [(False, True), (True, False)])
def test_a_forced_run_removes_deadlines_off_the_grid(stage: Stage, people: Workforce, force: bool, kept: bool) -> None:
    one = people.obligation(base_date=date(2026, 3, 3))
    monitor(stage, people.company_id)
    people.deadline(one, date(2026, 4, 12))
    monitor(stage, people.company_id, force_recalculate=force)
    assert (date(2026, 4, 12) in due_dates(people, one)) == kept


def test_a_paused_schedule_makes_no_deadlines_but_statuses_change(stage: Stage, people: Workforce) -> None:
    one = people.obligation(base_date=date(2026, 3, 3), deadline_date=date(2026, 3, 9))
    add(people.db, "schedules", obligation_id=one, frequency="DAILY", base_date=date(2020, 1, 1), status="PAUSED")
    monitor(stage, people.company_id)
    assert (due_dates(people, one), obligation(people, one)) == ([], (date(2026, 3, 9), "OVERDUE"))


def test_new_deadlines_have_the_company_warned_once(stage: Stage, people: Workforce) -> None:
    people.obligation()
    monitor(stage, people.company_id)
    monitor(stage, people.company_id)
    found = people.db.execute(
        "SELECT payload ->> 'trigger_source', idempotency_key FROM signalbox.jobs WHERE job_type = 'deadline_alert'"
    ).fetchall()
    key = f"deadline_alert:{people.company_id}:{SLOT.isoformat()}:monitoring"
    assert found == [("MONITORING_JOB", key)]


def test_a_schedule_names_the_earliest_open_deadline(stage: Stage, people: Workforce) -> None:
    one = people.obligation(base_date=date(2026, 1, 31))
    monitor(stage, people.company_id)
    people.db.execute("UPDATE compliance.deadlines SET status = 'OVERDUE' WHERE due_date < %s", (TODAY,))
    monitor(stage, people.company_id)
    found = people.db.execute(
        "SELECT next_due_date FROM compliance.schedules WHERE obligation_id = %s", (one,)
    ).fetchone()
    assert found == (date(2026, 3, 31),)


def test_another_company_is_left_alone(stage: Stage, people: Workforce, db: psycopg.Connection) -> None:
    theirs = Workforce.make(db, name="Other").obligation()
    people.obligation()
    assert monitor(stage, people.company_id)["obligations"] == 1
    assert due_dates(people, theirs) == []


def test_a_bad_row_is_left_and_counted_among_good_ones(stage: Stage, people: Workforce) -> None:
    good = [people.obligation() for _ in range(5)]
    nowhere = add(people.db, "sites", company_id=people.company_id, timezone="Mars/Phobos")
    bad = add(
        people.db, "obligations", company_id=people.company_id, site_id=nowhere, frequency="DAILY", base_date=TODAY
    )
    result = monitor(stage, people.company_id)
    assert (result["obligations"], result["skipped"]) == (6, 1)
    assert [bool(due_dates(people, one)) for one in [*good, bad]] == [True] * 5 + [False]
    error = people.db.execute(
        "SELECT entity_type, new_values ->> 'error_name', new_values #>> '{context,row_id}' FROM compliance.audit_logs"
    ).fetchall()
    assert error == [("BACKGROUND_JOB", "InvalidParameterValue", bad)]


def test_a_company_of_many_obligations_is_done_in_pieces(stage: Stage, people: Workforce) -> None:
    people.db.execute(
        "INSERT INTO compliance.obligations (company_id, site_id, frequency, base_date) "
        "SELECT %s, %s, 'MONTHLY', '2026-03-01' FROM generate_series(1, 501)",
        (people.company_id, people.site_id),
    )
    job_id = stage.submit("monitoring_schedule", payload={"company_id": people.company_id})
    assert stage.step(job_id)["cursor"]["counts"]["obligations"] == 500
    assert stage.step(job_id)["result"]["obligations"] == 501


def test_a_job_gives_way_to_another_of_its_company(stage: Stage, people: Workforce, writer: str) -> None:
    job_id = stage.submit("monitoring_schedule", payload={"company_id": people.company_id})
    with psycopg.connect(writer) as other:
        other.execute("SELECT 1 FROM compliance.companies FOR NO KEY UPDATE")
        assert stage.step(job_id)["status"] == "pending"
    assert stage.step(job_id)["status"] == "completed"
    assert len(stage.attempts(job_id)) == 2


def test_a_deleted_company_is_completed_and_an_unknown_one_refused(stage: Stage, people: Workforce) -> None:
    people.obligation()
    people.db.execute("UPDATE compliance.companies SET deleted_at = now()")
    assert monitor(stage, people.company_id)["obligations"] == 0
    unknown = stage.submit("monitoring_schedule", payload={"company_id": "00000000-0000-4000-8000-000000000000"})
    stage.step(unknown)
    assert stage.dead_letter(unknown)["failure_reason"] == "permanent"
