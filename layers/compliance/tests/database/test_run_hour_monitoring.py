"""Generators' hours are compared with their limits, and each level is told once a period."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from signalbox.testing.stage import Stage
from tests.support.compliance_rows import Workforce, add, rows, run_job

SLOT = datetime(2026, 3, 10, 7, tzinfo=UTC)
TODAY = SLOT.date()


def monitor(stage: Stage, people: Workforce, slot: datetime = SLOT, **payload: Any) -> dict[str, Any]:
    return run_job(stage, "run_hour_monitoring", people.company_id, slot, **payload)


def generator(people: Workforce, *hours: tuple[date, float], **fields: Any) -> str:
    one = add(people.db, "generators", **people.ids, document_id=people.document(), generator_identifier="G1", **fields)
    for day, count in hours:
        add(people.db, "run_hour_records", generator_id=one, recording_date=day, hours_recorded=count)
    return one


def levels(people: Workforce) -> list[str]:
    """Return the parts of each key that was told by mail."""
    keys = [key for (key,) in rows(people.db, "notifications", "dedupe_key") if key.endswith("EMAIL")]
    return sorted(":".join(key.split(":")[2:5]) for key in keys)


@pytest.mark.parametrize(
    ("hours", "level", "severity", "title"),
    [
        (399.9, None, None, None),
        (400, 80, "WARNING", "Run-Hour Limit 80% Warning"),
        (449.9, 80, "WARNING", "Run-Hour Limit 80% Warning"),
        (450, 90, "ERROR", "Run-Hour Limit 90% Reached"),
        (499.9, 90, "ERROR", "Run-Hour Limit 90% Reached"),
        (500, 100, "CRITICAL", "Run-Hour Limit Breached"),
        (9999, 100, "CRITICAL", "Run-Hour Limit Breached"),
    ],
)
def test_the_highest_level_is_told_by_two_channels(
    stage: Stage, people: Workforce, hours: float, level: int | None, severity: str, title: str
) -> None:
    one = generator(people, (TODAY, hours), annual_run_hour_limit=500)
    result = monitor(stage, people)
    told = int(level is not None)
    assert result == {"generators": 1, "breaches": told, "notifications": 2 * told, "skipped": 0}
    found = rows(people.db, "notifications", "dedupe_key", "severity", "title", order="dedupe_key")
    key = f"RUN_HOUR_MONITORING:{one}:ANNUAL:2026-01-01:{level}:{people.owner_id}"
    assert found == [(f"{key}:{channel}", severity, title) for channel in ("EMAIL", "IN_APP")] * told


def test_the_message_has_the_share_and_the_hours(stage: Stage, people: Workforce) -> None:
    generator(people, (TODAY, 465), annual_run_hour_limit=500)
    monitor(stage, people)
    expected = "Generator G1 has reached 93.0% (90% threshold) of its annual 500 hour limit. Year-to-date: 465 hours."
    assert set(rows(people.db, "notifications", "message")) == {(expected,)}
    metadata = {"limit_kind": "ANNUAL", "period_start": "2026-01-01", "threshold_level": 90, "percentage": 93.0}
    assert rows(people.db, "notifications", "metadata")[0] == (metadata,)


@pytest.mark.parametrize(
    ("anniversary", "day", "counts"),
    [
        (None, date(2026, 1, 1), True),
        (None, date(2025, 12, 31), False),
        (date(2020, 3, 10), date(2026, 3, 10), True),
        (date(2020, 3, 10), date(2026, 3, 9), False),
        (date(2020, 3, 11), date(2025, 3, 11), True),
        (date(2020, 3, 11), date(2025, 3, 10), False),
        (date(2024, 2, 29), date(2026, 2, 28), True),
        (date(2024, 2, 29), date(2026, 2, 27), False),
    ],
)
def test_the_year_begins_on_the_latest_anniversary(
    stage: Stage, people: Workforce, anniversary: date | None, day: date, counts: bool
) -> None:
    generator(people, (day, 100), annual_run_hour_limit=100, anniversary_date=anniversary)
    assert monitor(stage, people)["breaches"] == int(counts)
    assert rows(people.db, "generators", "current_year_hours") == [(100 if counts else 0,)]


def test_the_month_has_a_limit_of_its_own(stage: Stage, people: Workforce) -> None:
    generator(people, (date(2026, 2, 28), 100), (date(2026, 3, 1), 90), monthly_run_hour_limit=100)
    assert monitor(stage, people)["breaches"] == 1
    assert levels(people) == ["MONTHLY:2026-03-01:90"]
    assert monitor(stage, people, check_monthly=False)["breaches"] == 0


@pytest.mark.parametrize(
    ("limit", "hours", "expected"),
    [(0, 0, {"breaches": 0}), (0, 0.1, {"breaches": 1}), (None, 9999, {"breaches": 0}), (-1, 5, {"skipped": 1})],
)
def test_a_limit_of_zero_is_reached_by_any_hour(
    stage: Stage, people: Workforce, limit: int | None, hours: float, expected: dict[str, int]
) -> None:
    generator(people, (TODAY, hours), annual_run_hour_limit=limit)
    result = monitor(stage, people)
    assert expected.items() <= result.items()
    percentages = {metadata["percentage"] for (metadata,) in rows(people.db, "notifications", "metadata")}
    assert percentages == ({999.9} if expected.get("breaches") else set())


def test_each_level_is_told_once_a_year_and_none_below_a_graver_one(stage: Stage, people: Workforce) -> None:
    one = generator(people, (TODAY, 400), annual_run_hour_limit=500)
    monitor(stage, people)
    monitor(stage, people, SLOT + timedelta(days=1))
    add(people.db, "run_hour_records", generator_id=one, recording_date=TODAY, hours_recorded=100)
    monitor(stage, people, SLOT + timedelta(days=1))
    people.db.execute("UPDATE compliance.run_hour_records SET hours_recorded = 225")
    monitor(stage, people, SLOT + timedelta(days=2))
    assert levels(people) == ["ANNUAL:2026-01-01:100", "ANNUAL:2026-01-01:80"]
    add(people.db, "run_hour_records", generator_id=one, recording_date=date(2027, 1, 5), hours_recorded=400)
    monitor(stage, people, datetime(2027, 1, 6, 7, tzinfo=UTC))
    assert "ANNUAL:2027-01-01:80" in levels(people)


def test_a_past_slot_counts_no_later_hours(stage: Stage, people: Workforce) -> None:
    generator(people, (TODAY, 500), annual_run_hour_limit=500)
    assert monitor(stage, people, SLOT - timedelta(days=1))["breaches"] == 0


def test_generators_that_are_gone_or_not_theirs_do_not_count(stage: Stage, people: Workforce) -> None:
    generator(people, (TODAY, 500), annual_run_hour_limit=500, is_active=False)
    generator(people, (TODAY, 500), annual_run_hour_limit=500, deleted_at=SLOT)
    generator(Workforce.make(people.db, name="Other"), (TODAY, 500), annual_run_hour_limit=500)
    assert monitor(stage, people) == {"generators": 0, "breaches": 0, "notifications": 0, "skipped": 0}


def test_a_breach_without_anybody_is_told_once_there_is_somebody(stage: Stage, people: Workforce) -> None:
    generator(people, (TODAY, 500), annual_run_hour_limit=500)
    people.db.execute("DELETE FROM compliance.user_roles")
    assert monitor(stage, people)["notifications"] == 0
    people.hire("OWNER")
    assert monitor(stage, people)["notifications"] == 2
