"""Compare generators' hours with their limits, and tell of the highest level that each has reached."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Literal
from uuid import UUID

from compliance.company.bad_rows import BadRow
from compliance.company.company_job import CompanyJob, CompanyPayload, Effects, Rows, work_through
from compliance.company.notify import Channel, Notification, Severity
from signalbox import Completed, JobContext, More, Snooze
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
_LEVELS: tuple[tuple[int, Severity, str], ...] = (
    (100, "CRITICAL", "Run-Hour Limit Breached"),
    (90, "ERROR", "Run-Hour Limit 90% Reached"),
    (80, "WARNING", "Run-Hour Limit 80% Warning"),
)
_CHANNELS: tuple[Channel, ...] = ("IN_APP", "EMAIL")
_MOST = Decimal("999.9")


class RunHourMonitoring(CompanyPayload):
    """Say which company, perhaps one generator, and which limits."""

    generator_id: UUID | None = None
    check_monthly: bool = True
    check_annual: bool = True


@dataclass(frozen=True, slots=True)
class Generator:
    """Hold one row of the query `store`."""

    id: str
    site_id: str | None
    identifier: str
    annual_limit: Decimal | None
    monthly_limit: Decimal | None
    year_start: date
    month_start: date
    year_hours: Decimal
    month_hours: Decimal
    told: list[list[str]]  # the kind of limit, the period's start and the level of each notification


@dataclass(frozen=True, slots=True)
class Breach:
    """Describe the highest level of one limit that a generator has reached."""

    kind: Literal["ANNUAL", "MONTHLY"]
    start: date
    level: int
    severity: Severity
    title: str
    percentage: Decimal
    limit: Decimal
    hours: Decimal


def run_hour_monitoring(context: JobContext) -> Completed | More | Snooze:
    """Do a piece of the company's generators."""
    rows = Rows(
        find=SQL["find"],
        handle=_compare,
        counts=("generators", "breaches"),
        values={"generator_id": context.payload.generator_id},
        total=SQL["count"],
        progress="Checked {done}/{total} generators, {breaches} threshold breaches",
    )
    return work_through(context, rows)


def _compare(job: CompanyJob, ids: list[str]) -> Effects:
    db, effects = job.context.db, Effects()
    generators = [Generator(*row) for row in db.execute(SQL["store"], {**job.values, "ids": ids}).fetchall()]
    for generator in generators:
        for breach in _breaches(generator, job.context.payload):
            effects.counts["breaches"] += 1
            if not _was_told(generator, breach):
                effects.tell(*_notifications(job, generator, breach))
    effects.counts["generators"] = len(generators)
    return effects


def _breaches(generator: Generator, payload: RunHourMonitoring) -> Iterator[Breach]:
    if payload.check_annual:
        yield from _reached("ANNUAL", generator.year_start, generator.year_hours, generator.annual_limit)
    if payload.check_monthly:
        yield from _reached("MONTHLY", generator.month_start, generator.month_hours, generator.monthly_limit)


def _reached(
    kind: Literal["ANNUAL", "MONTHLY"], start: date, hours: Decimal, limit: Decimal | None
) -> Iterator[Breach]:
    if limit is None:
        return
    if limit < 0:
        raise BadRow(f"a limit of {limit} hours is below 0")
    percentage = share(hours, limit)
    for level, severity, title in _LEVELS:
        if percentage >= level:
            yield Breach(kind, start, level, severity, title, percentage, limit, hours)
            return


def share(hours: Decimal, limit: Decimal) -> Decimal:
    """Return the hours in % of the limit, at most 999.9; any hour of a limit of 0 is that much."""
    if limit == 0:
        return _MOST if hours > 0 else Decimal(0)
    return min(hours * 100 / limit, _MOST)


def _was_told(generator: Generator, breach: Breach) -> bool:
    """Say whether anybody was told of this level of the period, or of a graver one."""
    start = breach.start.isoformat()
    return any(
        kind == breach.kind and day == start and int(level) >= breach.level for kind, day, level in generator.told
    )


def _notifications(job: CompanyJob, generator: Generator, breach: Breach) -> list[Notification]:
    person = job.people.recipient(None, generator.site_id)
    if person is None:
        job.warn_of_nobody("GENERATOR", generator.id)
        return []
    return [
        Notification(
            to=person,
            channel=channel,
            job_type="run_hour_monitoring",
            entity_type="GENERATOR",
            entity_id=generator.id,
            parts=f"{breach.kind}:{breach.start.isoformat()}:{breach.level}",
            alert_type="BREACH",
            severity=breach.severity,
            title=breach.title,
            message=_message(generator, breach),
            site_id=generator.site_id,
            metadata={
                "limit_kind": breach.kind,
                "period_start": breach.start.isoformat(),
                "threshold_level": breach.level,
                "percentage": float(round(breach.percentage, 1)),
            },
        )
        for channel in _CHANNELS
    ]


def _message(generator: Generator, breach: Breach) -> str:
    period, since = ("annual", "Year") if breach.kind == "ANNUAL" else ("monthly", "Month")
    return (
        f"Generator {generator.identifier} has reached {breach.percentage:.1f}% ({breach.level}% threshold) of its "
        f"{period} {breach.limit.normalize():f} hour limit. "
        f"{since}-to-date: {breach.hours.normalize():f} hours."
    )
