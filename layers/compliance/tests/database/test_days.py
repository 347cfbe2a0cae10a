"""A day begins at midnight where the site is, also when clocks change: jobs differ by a second on either side."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

import pytest

from signalbox.testing.stage import Stage
from tests.support.compliance_rows import Workforce, add, run_job

LONDON, KIRITIMATI = "Europe/London", "Pacific/Kiritimati"
WEEK, SECOND = timedelta(days=7), timedelta(seconds=1)


def _obligation(people: Workforce, day: date) -> None:
    people.obligation(frequency=None, deadline_date=day + WEEK)


def _deadline(people: Workforce, day: date) -> None:
    people.deadline(people.obligation(), day + WEEK)


def _permit(people: Workforce, day: date) -> None:
    people.document(expiry_date=day + timedelta(days=90))


def _sample(people: Workforce, day: date) -> None:
    one = add(people.db, "parameters", **people.ids, document_id=people.document(), parameter_type="pH")
    add(people.db, "lab_results", parameter_id=one, sample_date=day - WEEK, value=7)


def _hours(people: Workforce, day: date) -> None:
    given = {"document_id": people.document(), "annual_run_hour_limit": 500}
    one = add(people.db, "generators", **people.ids, **given)
    add(people.db, "run_hour_records", generator_id=one, recording_date=day, hours_recorded=500)


@pytest.mark.parametrize("is_that_day", [False, True])
@pytest.mark.parametrize(
    ("zone", "day", "begins"),
    [
        (LONDON, date(2026, 3, 29), datetime(2026, 3, 29, tzinfo=UTC)),  # of 23 hours
        (LONDON, date(2026, 3, 30), datetime(2026, 3, 29, 23, tzinfo=UTC)),
        (LONDON, date(2026, 10, 25), datetime(2026, 10, 24, 23, tzinfo=UTC)),  # of 25 hours
        (LONDON, date(2026, 10, 26), datetime(2026, 10, 26, tzinfo=UTC)),
        (KIRITIMATI, date(2026, 3, 10), datetime(2026, 3, 9, 10, tzinfo=UTC)),
    ],
)
@pytest.mark.parametrize(
    ("job_type", "make", "count"),
    [
        ("monitoring_schedule", _obligation, "due_soon"),
        ("deadline_alert", _deadline, "deadlines"),
        ("evidence_reminder", _obligation, "obligations"),
        ("sampling_schedule", _sample, "due"),
        ("run_hour_monitoring", _hours, "breaches"),
        ("permit_renewal_reminder", _permit, "documents"),
    ],
)
def test_a_day_begins_at_midnight_where_the_site_is(
    stage: Stage, people: Workforce, job_type: str, make: Callable[[Workforce, date], None], count: str,
    zone: str, day: date, begins: datetime, is_that_day: bool,
) -> None:  # fmt: skip
    people.db.execute("UPDATE compliance.sites SET timezone = %s", (zone,))
    make(people, day)
    result = run_job(stage, job_type, people.company_id, begins if is_that_day else begins - SECOND)
    assert result[count] == int(is_that_day)
