"""The grid of deadlines is that of a calendar that counts day by day, and no alert comes twice or is lost."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compliance.pack import PACK
from signalbox import Pack
from signalbox.calendars import add_months
from signalbox.testing.stage import Stage
from tests.support.compliance_rows import Workforce, run_job

FREQUENCIES = ("DAILY", "WEEKLY", "MONTHLY", "QUARTERLY", "ANNUAL", "ONE_TIME")
MONTHS = {"MONTHLY": 1, "QUARTERLY": 3, "ANNUAL": 12}
DAYS = {"DAILY": 1, "WEEKLY": 7}
quick = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
dates = st.dates(date(2023, 1, 1), date(2028, 12, 31))


@pytest.fixture
def signalbox_packs() -> tuple[Pack, ...]:
    return (PACK,)


@pytest.fixture
def db(signalbox_db: psycopg.Connection) -> psycopg.Connection:
    return signalbox_db


def grid(frequency: str, base: date, until: date, begins: bool) -> list[date]:
    """Return all dates of the grid up to a day, and at least one, one by one."""
    if frequency == "ONE_TIME":
        return [base]
    found: list[date] = [base] if begins else []
    number = 1
    while True:
        if frequency in DAYS:
            day = base + timedelta(days=DAYS[frequency] * number)
        else:
            day = add_months(base, MONTHS[frequency] * number)
        if day > until and found:
            return found
        found.append(day)
        number += 1


@quick
@given(
    st.sampled_from(FREQUENCIES),
    dates,
    dates,
    st.one_of(st.none(), st.integers(-3, 40)),
    st.booleans(),
)
def test_deadlines_are_those_of_a_calendar_that_counts(
    signalbox_stage: Stage,
    db: psycopg.Connection,
    frequency: str,
    base: date,
    today: date,
    completed: int | None,
    begins: bool,
) -> None:
    db.execute("TRUNCATE compliance.companies CASCADE; TRUNCATE compliance.users")
    people = Workforce.make(db)
    one = people.obligation(frequency=frequency, base_date=base)
    slot = datetime(today.year, today.month, today.day, 12, tzinfo=UTC)
    if begins:
        people.deadline(one, base)
    last = None if completed is None else base + timedelta(days=completed * 17)
    if last is not None and not (begins and last == base):
        people.deadline(one, last, status="COMPLETED", completed_at=slot - timedelta(days=1))
    elif last is not None:
        db.execute(
            "UPDATE compliance.deadlines SET status = 'COMPLETED', completed_at = %s", (slot - timedelta(days=1),)
        )
    run_job(signalbox_stage, "monitoring_schedule", people.company_id, slot)
    starts = begins or last == base
    whole = grid(frequency, base, max(today, last or today) + timedelta(days=800), starts)
    due = [day for day in whole if last is None or day > last]
    expected = [day for day in due if day <= today + timedelta(days=90)] or due[:1]
    found = {day for (day,) in db.execute("SELECT due_date FROM compliance.deadlines WHERE status <> 'COMPLETED'")}
    assert found == set(expected) | ({base} if begins and last != base else set())
    [(deadline,)] = db.execute("SELECT deadline_date FROM compliance.obligations").fetchall()
    assert deadline == (expected[0] if expected else None)


@quick
@given(st.integers(-3, 20), st.lists(st.integers(-5, 25), min_size=1, max_size=12))
def test_each_level_is_told_once_whatever_runs_are_missed_or_repeated(
    signalbox_stage: Stage, db: psycopg.Connection, days: int, runs: list[int]
) -> None:
    db.execute("TRUNCATE compliance.companies CASCADE; TRUNCATE compliance.users; TRUNCATE compliance.notifications")
    people = Workforce.make(db)
    start = datetime(2026, 3, 10, 12, tzinfo=UTC)
    due = start.date() + timedelta(days=days)
    people.deadline(people.obligation(), due)
    gravest, expected, is_open = 99, [], True
    for run in runs:
        run_job(signalbox_stage, "deadline_alert", people.company_id, start + timedelta(days=run))
        left = (due - (start.date() + timedelta(days=run))).days
        level = 0 if left < 0 else next((level for level in (1, 3, 7) if left <= level), 99)
        if is_open and level < gravest:
            expected.append(level)
            gravest = level
        is_open = is_open and level != 0
    told = db.execute(
        "SELECT split_part(dedupe_key, ':', 3)::int FROM compliance.notifications WHERE channel = 'EMAIL' ORDER BY 1"
    )
    assert [level for (level,) in told] == sorted(expected)
