"""Calculate when samples are due, and remind of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from uuid import UUID

from psycopg.types.json import Jsonb

from compliance.company.company_job import CompanyJob, CompanyPayload, Effects, Rows, work_through
from compliance.company.notify import Notification, Severity
from compliance.company.people import Person
from signalbox import Completed, JobContext, More, Snooze
from signalbox.calendars import add_months, next_business_day
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
_REGION = "GB-ENG"
_WEEK = timedelta(days=7)
_SEVERITIES: tuple[Severity, ...] = ("INFO", "WARNING", "ERROR")


class SamplingSchedule(CompanyPayload):
    """Say which company, perhaps one parameter, and whether each next date is written down although it is the same."""

    parameter_id: UUID | None = None
    force_generate: bool = False


@dataclass(frozen=True, slots=True)
class Parameter:
    """Hold one row of the query `read`."""

    id: str
    site_id: str | None
    site_name: str | None
    parameter_type: str
    frequency: str | None
    weekday: int
    stored: date | None
    today: date
    after: date  # the day of the last sample, else the day on which the parameter was made
    told: Sequence[str]  # the keys of its notifications

    def was_told(self, day: date, severity: Severity) -> bool:
        """Say whether anybody was told this of the day's sample, or worse."""
        prefix = f"SAMPLING_SCHEDULE:{self.id}:{day.isoformat()}:"
        worse = _SEVERITIES[_SEVERITIES.index(severity) :]
        return any(key.startswith(f"{prefix}{one}:") for key in self.told for one in worse)


def sampling_schedule(context: JobContext) -> Completed | More | Snooze:
    """Do a piece of the parameters of active permits."""
    payload: SamplingSchedule = context.payload
    rows = Rows(
        find=SQL["find"],
        handle=_schedule,
        counts=("parameters", "due"),
        values={"parameter_id": payload.parameter_id},
        total=SQL["count"],
        progress="Processed {done}/{total} parameters",
    )
    return work_through(context, rows)


def _schedule(job: CompanyJob, ids: list[str]) -> Effects:
    db, effects = job.context.db, Effects()
    parameters = [Parameter(*row) for row in db.execute(SQL["read"], {**job.values, "ids": ids}).fetchall()]
    effects.counts["parameters"] = len(parameters)
    dates = [(parameter, next_sample(parameter)) for parameter in parameters]
    changed = [
        {"id": parameter.id, "next_sample_date": day.isoformat(), "sampling_frequency": parameter.frequency}
        for parameter, day in dates
        if day != parameter.stored or job.context.payload.force_generate
    ]
    if changed:
        db.execute(SQL["store"], {**job.values, "changed": Jsonb(changed)})
    for parameter, day in dates:
        if day <= parameter.today:
            effects.counts["due"] += 1
            effects.tell(*_reminders(job, parameter, day))
    return effects


def next_sample(parameter: Parameter) -> date:
    """Return the day of the next sample, strictly after the last one."""
    day = parameter.after
    weekday = (parameter.weekday - day.weekday() - 1) % 7 + 1
    ways: Mapping[str, Callable[[], date]] = {
        "DAILY": lambda: next_business_day(_REGION, day),
        "WEEKLY": lambda: day + timedelta(days=weekday),
        "MONTHLY": lambda: add_months(day.replace(day=1), 1),
        "QUARTERLY": lambda: add_months(day.replace(day=1), 3 - (day.month - 1) % 3),
        "ANNUAL": lambda: add_months(day, 12),
    }
    return ways.get(parameter.frequency or "", lambda: day + _WEEK)()


def _reminders(job: CompanyJob, parameter: Parameter, day: date) -> list[Notification]:
    severity = _severity((parameter.today - day).days)
    if parameter.was_told(day, severity):
        return []
    people = _people(job, parameter)
    if not people:
        job.warn_of_nobody("PARAMETER", parameter.id)
    return [
        Notification(
            to=person,
            channel="IN_APP",
            job_type="sampling_schedule",
            entity_type="PARAMETER",
            entity_id=parameter.id,
            parts=f"{day.isoformat()}:{severity}",
            alert_type="EVIDENCE_REMINDER",
            severity=severity,
            title=f"Sample Due: {parameter.parameter_type}",
            message=f"Sampling is due for {parameter.parameter_type} at {parameter.site_name}",
            site_id=parameter.site_id,
        )
        for person in people
    ]


def _people(job: CompanyJob, parameter: Parameter) -> list[Person]:
    """Return all of the site, else the one who gets all else."""
    if of_site := job.people.of_site(parameter.site_id):
        return of_site
    person = job.people.recipient(None, parameter.site_id)
    return [person] if person else []


def _severity(days_late: int) -> Severity:
    if days_late > 7:
        return "ERROR"
    return "WARNING" if days_late > 0 else "INFO"
